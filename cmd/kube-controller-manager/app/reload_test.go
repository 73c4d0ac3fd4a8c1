package app

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/component-base/configz"
	"k8s.io/component-base/logs"
	metricstestutil "k8s.io/component-base/metrics/testutil"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	kcmv1alpha1 "k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/config"
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/strictyaml"
)

// lines is a configuration file with a flag and its value in each line.
type lines struct{ path string }

const before = "v 0\nkube-api-qps 20\nkube-api-burst 30\nconcurrent-job-syncs 5\nmin-resync-period 12h\n"

func (l lines) Path() string { return l.path }

func (l lines) Settings() []config.Setting {
	all, _ := l.Read([]byte(before))
	return all
}

func (lines) Read(content []byte) (all []config.Setting, err error) {
	for line := range strings.Lines(string(content)) {
		flag, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if !ok {
			return nil, fmt.Errorf("bad: %s", line)
		}
		all = append(all, config.Setting{Flag: flag, Field: "field." + flag, Value: strictyaml.Value{Kind: strictyaml.Int, Text: value}, Reload: flag != "min-resync-period"})
	}
	return all, nil
}

func (lines) Shown(all []config.Setting) (*kcmv1alpha1.KubeControllerManagerConfiguration, error) {
	c := &kcmv1alpha1.KubeControllerManagerConfiguration{}
	c.KubeCloudShared.ClusterName = fmt.Sprint(all)
	return c, nil
}

// staffed is a loop whose workers can be set.
type staffed struct {
	pretendLoop
	workers atomic.Int32
}

func (s *staffed) SetWorkers(n int) { s.workers.Store(int32(n)) }

// rig is a process with a configuration file and a loop.
type rig struct {
	*follower
	cc   ControllerContext
	loop *staffed
	log  ktesting.Underlier
}

func (r *rig) write(t *testing.T, content string) {
	t.Helper()
	if err := os.WriteFile(r.File.Path(), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	r.look()
}

// logged is how many lines of the log have all parts.
func (r *rig) logged(parts ...string) int {
	n := 0
	for _, entry := range r.log.GetBuffer().Data() {
		line, has := fmt.Sprint(entry.Message, entry.Err, entry.ParameterKVList), true
		for _, part := range parts {
			has = has && strings.Contains(line, part)
		}
		if has {
			n++
		}
	}
	return n
}

func newRig(t *testing.T) *rig {
	t.Helper()
	t.Cleanup(func() { _, _ = logs.GlogSetter("0") })
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true), ktesting.Verbosity(10)))

	c := testConfig(t)
	c.Kubeconfig.QPS, c.Kubeconfig.Burst = 20, 30
	c.File = lines{filepath.Join(t.TempDir(), "kcm.yaml")}
	shown, err := publishConfig(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { configz.Delete(configzName) })
	p := testProcess(t, c)
	r := &rig{follower: newFollower(p, shown, logger), loop: &staffed{pretendLoop: pretendLoop{name: names.JobController}}, log: logger.GetSink().(ktesting.Underlier)}
	r.cc = ControllerContext{Config: &c.ComponentConfig, process: p, term: newRunning(0), name: names.JobController}
	p.terms.add(r.cc.term)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(stop)
	r.cc.Go(ctx, r.loop)
	r.write(t, before)
	return r
}

func TestAChangeOfTheFileIsTakenUp(t *testing.T) {
	r := newRig(t)
	limited := r.rates.Limited(&rest.Config{}, 2, 1).RateLimiter
	if n := len(r.log.GetBuffer().Data()); n != 0 || r.loop.workers.Load() != 0 || limited.QPS() != 40 {
		t.Fatalf("%d lines are logged of a file that has not changed:\n%s", n, r.log.GetBuffer().String())
	}
	r.write(t, strings.NewReplacer("v 0", "v 7", "qps 20", "qps 50", "syncs 5", "syncs 9").Replace(before))
	if !klog.V(7).Enabled() || klog.V(8).Enabled() {
		t.Error("the verbosity of the log is not 7")
	}
	if n := r.loop.workers.Load(); n != 9 {
		t.Errorf("%d workers, want 9", n)
	}
	if limited.QPS() != 100 {
		t.Errorf("%g requests per second, want 100", limited.QPS())
	}
	if r.logged("Setting changed", "field.concurrent-job-syncs", "5", "9") != 1 || r.logged("restart") != 0 {
		t.Errorf("logged:\n%s", r.log.GetBuffer().String())
	}
	late := &staffed{pretendLoop: pretendLoop{name: names.JobController}}
	r.crews.join(names.JobController, late)
	if n := late.workers.Load(); n != 9 {
		t.Errorf("a loop that starts later has %d workers, want 9", n)
	}
	for path, handler := range map[string]http.Handler{"/flagz": r.shownFlags, "/configz": r.endpoints()} {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, path, nil))
		if !flagIs(answer.Body.String(), "concurrent-job-syncs", "9") && !strings.Contains(answer.Body.String(), "concurrent-job-syncs field.concurrent-job-syncs 9") {
			t.Errorf("%s shows %s", path, answer.Body)
		}
	}
}

// flagIs reports whether /flagz has the flag, behind one of the marks that it takes by chance.
func flagIs(page, flag, value string) bool {
	return regexp.MustCompile(`(?m)^` + flag + `[:= ]+` + value + `$`).MatchString(page)
}

func TestFlagzIsNotStale(t *testing.T) {
	s := newShownFlags(flags{"v": "0", "controllers": "*"})
	for _, want := range []string{"0", "4", "6"} {
		s.set("v", want)
		for range 2 {
			answer := httptest.NewRecorder()
			s.ServeHTTP(answer, httptest.NewRequest(http.MethodGet, "/flagz", nil))
			if body := answer.Body.String(); !flagIs(body, "v", want) || !flagIs(body, "controllers", `\*`) {
				t.Errorf("%q lacks v=%s", body, want)
			}
		}
	}
}

func TestWhatNeedsARestartIsNamedOnce(t *testing.T) {
	r := newRig(t)
	needed := func(want float64) {
		t.Helper()
		if got, err := metricstestutil.GetGaugeMetricValue(restartNeeded); err != nil || got != want {
			t.Errorf("%g fields need a restart, %v, want %g", got, err, want)
		}
	}
	r.write(t, strings.Replace(before, "12h", "1h", 1))
	r.write(t, strings.NewReplacer("12h", "1h", "v 0", "v 1").Replace(before))
	if n := r.logged("needs a restart", "field.min-resync-period", "12h", "1h"); n != 1 {
		t.Errorf("%d lines name the field, want 1:\n%s", n, r.log.GetBuffer().String())
	}
	needed(1)
	r.write(t, strings.Replace(before, "12h", "2h", 1))
	if n := r.logged("needs a restart"); n != 2 {
		t.Errorf("%d lines after another value, want 2", n)
	}
	r.write(t, before)
	needed(0)
	r.write(t, strings.Replace(before, "qps 20", "qps 0", 1)) // clients would have limiters of their own
	if r.logged("needs a restart", "kube-api-qps") != 1 {
		t.Errorf("logged:\n%s", r.log.GetBuffer().String())
	}
	needed(1)
	r.write(t, strings.Replace(before, "qps 20", "qps 50", 1))
	needed(0)
}

func TestABadFileIsNamedOnceAndTheLastGoodOneStays(t *testing.T) {
	r := newRig(t)
	refused := func(want float64) {
		t.Helper()
		if got, err := metricstestutil.GetGaugeMetricValue(fileRefused); err != nil || got != want {
			t.Errorf("kcm_config_refused is %v, want %v: %v", got, want, err)
		}
	}
	good := strings.Replace(before, "syncs 5", "syncs 9", 1)
	r.write(t, good)
	refused(0)
	r.write(t, "rubbish\n")
	r.look()
	refused(1)
	if n := r.logged("cannot be used", "bad: rubbish"); n != 1 {
		t.Errorf("%d lines name the bad file, want 1", n)
	}
	if n := r.loop.workers.Load(); n != 9 {
		t.Errorf("%d workers with a bad file, want 9", n)
	}
	r.write(t, good)
	refused(0)
	if r.logged("in order again") != 1 {
		t.Errorf("logged:\n%s", r.log.GetBuffer().String())
	}
	if err := os.Remove(r.File.Path()); err != nil {
		t.Fatal(err)
	}
	r.look()
	r.look()
	refused(1)
	if n := r.logged("cannot be used", "no such file"); n != 1 {
		t.Errorf("%d lines name the lost file, want 1", n)
	}
	r.write(t, strings.Replace(before, "syncs 5", "syncs 3", 1))
	refused(0)
	if n := r.loop.workers.Load(); n != 3 || r.logged("in order again") != 2 {
		t.Errorf("%d workers after it, want 3; logged:\n%s", n, r.log.GetBuffer().String())
	}
}

func TestTheFileIsFollowedUntilTheStop(t *testing.T) {
	r := newRig(t)
	stop := r.followFile(t.Context(), r.shown)
	if err := os.WriteFile(r.File.Path(), []byte(strings.Replace(before, "syncs 5", "syncs 8", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the change is taken up", func() bool { return r.loop.workers.Load() == 8 })
	stop()
	r.CompletedConfig.File = nil
	r.followFile(t.Context(), r.shown)() // nothing to follow
}

func TestWorkersOfTermsThatEndAreLeftAlone(t *testing.T) {
	r := newRig(t)
	r.terms.remove(r.cc.term)
	r.crews.set(names.JobController, 4)
	if n := r.loop.workers.Load(); n != 0 {
		t.Errorf("%d workers were set", n)
	}
}

// TestTheTableSaysWhatIsTakenUp holds the table of fields to what this package can do.
func TestTheTableSaysWhatIsTakenUp(t *testing.T) {
	table, err := os.ReadFile("options/fields.tsv")
	if err != nil {
		t.Fatal(err)
	}
	can := map[string]bool{"v": true, "kube-api-qps": true, "kube-api-burst": true}
	for flag := range crewOf {
		can[flag] = true
	}
	for line := range strings.Lines(string(table)) {
		row := strings.Split(strings.TrimSpace(line), "\t")
		if said := row[2] == "yes"; said != can[row[0]] {
			t.Errorf("--%s is taken up: the table says %v", row[0], said)
		}
		delete(can, row[0])
	}
	if len(can) > 0 {
		t.Errorf("the table lacks %v", can)
	}
}

func TestTheFileIsLookedAtAsOftenAsIsPromised(t *testing.T) {
	if promised := 5 * time.Second; 2*fileLook > promised {
		t.Errorf("the file is looked at every %s: a change that just misses a look is late by docs/operate/config.md (%s)", fileLook, promised)
	}
}
