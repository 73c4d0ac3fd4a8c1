package app

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/component-base/configz"
	"k8s.io/component-base/logs"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/config"
)

// fileLook is how often the configuration file is looked at. It is read, not watched: that
// holds for every way in which files are changed, and for every file system.
const fileLook = 2 * time.Second

// refusedLooks is after how many looks a content that was refused is read again, which is
// after a minute: what was wrong may be another file, which it names.
const refusedLooks = 30

var (
	reloads = metrics.NewCounterVec(&metrics.CounterOpts{
		Name:           "kcm_config_reloads_total",
		Help:           "Changes of the file of --config while the process ran, by result: taken up (success), or refused with the last good one kept (error).",
		StabilityLevel: metrics.ALPHA,
	}, []string{"result"})
	fileRefused = metrics.NewGauge(&metrics.GaugeOpts{
		Name:           "kcm_config_refused",
		Help:           "1 while the file of --config cannot be used, so that what was read of it last stays in force.",
		StabilityLevel: metrics.ALPHA,
	})
	restartNeeded = metrics.NewGauge(&metrics.GaugeOpts{
		Name:           "kcm_config_restart_needed",
		Help:           "Number of fields of the file of --config that have changed and need a restart.",
		StabilityLevel: metrics.ALPHA,
	})
)

func init() { legacyregistry.MustRegister(reloads, fileRefused, restartNeeded) }

// follower takes up changes of the configuration file while the process runs.
type follower struct {
	*process
	logger klog.Logger
	shown  *configz.Config
	// content is the file as it was read last, and failure why it could not be.
	content []byte
	failure string
	// refused is the content that could not be read, and looks how often it was seen since.
	refused []byte
	looks   int
	// present is in force; waiting is what the file has and needs a restart, by flag.
	present []config.Setting
	waiting map[string]string
}

// followFile follows the configuration file, if there is one, until the function that it
// returns is called.
func (p *process) followFile(ctx context.Context, shown *configz.Config) (stop func()) {
	if p.File == nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	f := newFollower(p, shown, klog.FromContext(ctx))
	go func() {
		defer close(ended)
		ticker := time.NewTicker(fileLook)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if ctx.Err() == nil { // a look that took long ended both
					f.look()
				}
			}
		}
	}()
	return func() {
		cancel()
		select {
		case <-ended:
		case <-time.After(fileLook): // a file that does not answer holds up no stop
		}
	}
}

func newFollower(p *process, shown *configz.Config, logger klog.Logger) *follower {
	return &follower{process: p, logger: logger, shown: shown, present: slices.Clone(p.File.Settings()), waiting: map[string]string{}}
}

// look reads the file, and takes it up when it has changed.
func (f *follower) look() {
	content, err := os.ReadFile(f.File.Path())
	if err != nil {
		f.content, f.refused = nil, nil
		f.refuse(err)
		return
	}
	if f.content != nil && bytes.Equal(content, f.content) {
		return
	}
	if f.looks++; f.refused != nil && bytes.Equal(content, f.refused) && f.looks < refusedLooks {
		return
	}
	first := f.content == nil && f.failure == ""
	settings, err := f.File.Read(content)
	if err != nil {
		f.content, f.refused, f.looks = nil, content, 0
		f.refuse(err)
		return
	}
	f.content, f.refused = content, nil
	if f.failure != "" {
		f.failure = ""
		fileRefused.Set(0)
		f.logger.Info("The configuration file is in order again", "file", f.File.Path())
	}
	if changed := f.take(settings); changed || !first {
		reloads.WithLabelValues("success").Inc()
	}
}

// refuse keeps the last good content, and says so once.
func (f *follower) refuse(err error) {
	if err.Error() == f.failure {
		return
	}
	f.failure = err.Error()
	fileRefused.Set(1)
	reloads.WithLabelValues("error").Inc()
	f.logger.Error(err, "The configuration file cannot be used; what was read last stays in force", "file", f.File.Path())
}

// take puts in force what can be, and names what cannot. It reports whether anything has
// changed.
func (f *follower) take(settings []config.Setting) (changed bool) {
	var put []config.Setting
	for i, s := range settings {
		was, is := f.present[i].Value.String(), s.Value.String()
		switch {
		case was == is:
			delete(f.waiting, s.Flag)
		case f.canTake(f.present[i]) && f.canTake(s):
			f.logger.Info("Setting changed", "field", s.Field, "flag", s.Flag, "from", was, "to", is)
			f.present[i] = s
			delete(f.waiting, s.Flag)
			put = append(put, s)
		case f.waiting[s.Flag] != is:
			f.logger.Info("Setting changed in the configuration file: it needs a restart", "field", s.Field, "flag", s.Flag, "inForce", was, "inFile", is)
			f.waiting[s.Flag] = is
			changed = true
		}
	}
	restartNeeded.Set(float64(len(f.waiting)))
	if len(put) == 0 {
		return changed
	}
	f.put(put)
	f.show(put)
	return true
}

// canTake reports whether the value can be put in force, and another one after it. At a
// rate of 0, clients have limiters of their own, which no burst changes.
func (f *follower) canTake(s config.Setting) bool {
	switch s.Flag {
	case "kube-api-qps":
		return s.Reload && number(s) != 0
	case "kube-api-burst":
		return s.Reload && number(f.setting("kube-api-qps")) != 0
	}
	return s.Reload
}

// put puts values in force.
func (f *follower) put(changed []config.Setting) {
	for _, s := range changed {
		switch s.Flag {
		case "v":
			if _, err := logs.GlogSetter(s.Value.Text); err != nil {
				f.logger.Error(err, "Cannot change the verbosity of the log")
			}
		case "kube-api-qps", "kube-api-burst":
			f.rates.Set(float32(number(f.setting("kube-api-qps"))), int(number(f.setting("kube-api-burst"))))
		default:
			f.crews.set(crewOf[s.Flag], int(number(s)))
		}
	}
}

// setting is what a flag is set to now.
func (f *follower) setting(flag string) config.Setting {
	for _, s := range f.present {
		if s.Flag == flag {
			return s
		}
	}
	return config.Setting{}
}

func number(s config.Setting) float64 {
	n, _ := strconv.ParseFloat(strings.TrimPrefix(s.Value.Text, "."), 64) // the flag has written it, and a file .inf
	return n
}

// show shows what is in force at /configz and /flagz.
func (f *follower) show(changed []config.Setting) {
	for _, s := range changed {
		if f.shownFlags != nil {
			f.shownFlags.set(s.Flag, s.Value.Text)
		}
	}
	c, err := f.File.Shown(f.present)
	if err == nil {
		c.TypeMeta = f.ComponentConfig.TypeMeta
		c.Generic.LeaderMigration = f.ComponentConfig.Generic.LeaderMigration // its file is read at the start only
		err = f.shown.Set(c)
	}
	if err != nil {
		f.logger.Error(err, "Cannot show the settings at /configz")
	}
}
