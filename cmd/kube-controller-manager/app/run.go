package app

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/client-go/tools/leaderelection"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/configz"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/version"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/config"
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/election"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
	"github.com/kube-kcm/kube-controller-manager/pkg/release"
	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
)

const (
	// component is the name of this program in events, metrics and user agents.
	component = "kube-controller-manager"
	// configzName is the one key that /configz shows.
	configzName = "kubecontrollermanager.config.k8s.io"
	// leaderHealthTolerance is how long after its expiry a lease that was not
	// renewed turns the leaderElection check red.
	leaderHealthTolerance = 20 * time.Second
)

// process is what lives as long as the program, whether it leads or waits.
type process struct {
	*config.CompletedConfig
	health *checks
	live   *checks
	ready  *checks
	debug  *debug.Registry
	events *eventStream
	why    *explainer
	// leading is how many terms have begun, terms are those that can be asked.
	leading atomic.Int32
	terms   terms
	// shadow compares what would be written; nil for a process that writes.
	shadow *shadowing
	// rates limit the requests of all clients.
	rates *transport.Rates
	crews *crews
	// shownFlags serves /flagz; nil when nothing is shown there.
	shownFlags *shownFlags
	// cloud is the cloud provider; nil for none. It is initialized once.
	cloud     cloudprovider.Interface
	cloudOnce sync.Once
	holding   holding
}

// Run serves, waits for leadership, runs the controllers and returns when ctx
// ends and all work has stopped: nil after a clean stop, an error when
// something could not start, did not stop, or leadership was lost.
func Run(ctx context.Context, c *config.CompletedConfig) error {
	logger := klog.FromContext(ctx)
	logger.Info("Starting", "version", version.Get().String(), "release", release.Version())
	shown, err := publishConfig(c)
	if err != nil {
		return err
	}
	defer configz.Delete(configzName)

	p := newProcess(ctx, c)
	defer p.events.shutdown()
	watched.of.Store(p)
	stopTracing, err := p.startTracing(ctx)
	if err != nil {
		return err
	}
	defer stopTracing()
	defer p.followFile(ctx, shown)()
	for _, line := range p.warnings() {
		klog.Warning(line)
	}
	if err := p.openCloud(ctx); err != nil {
		return err
	}
	var watchdog *leaderelection.HealthzAdaptor
	if p.leaderElect() {
		watchdog = leaderelection.NewLeaderHealthzAdaptor(leaderHealthTolerance)
		p.health.add(watchdog)
		p.live.add(watchdog)
	}
	stopServing, err := p.serve(ctx)
	if err != nil {
		return err
	}
	defer stopServing()
	return p.runControllers(ctx, watchdog)
}

func newProcess(ctx context.Context, c *config.CompletedConfig) *process {
	p := &process{
		CompletedConfig: c,
		health:          newChecks("/healthz"),
		live:            newChecks("/livez"),
		ready:           newChecks("/readyz"),
		debug:           debug.NewRegistry(debugPrefix),
		rates:           c.Rates,
	}
	p.crews = &crews{wanted: map[string]int{}, terms: &p.terms}
	if p.rates == nil {
		p.rates = transport.NewRates(c.Kubeconfig.QPS, c.Kubeconfig.Burst)
	}
	if c.Flagz != nil {
		p.shownFlags = newShownFlags(c.Flagz)
	}
	p.why = newExplainer(p)
	p.shadow = newShadow(p)
	p.events = startEvents(ctx, c.EventBroadcaster, c.EventRecorder, p.sendsEvents(c.Client.CoreV1()))
	return p
}

// warnings returns a line for each thing that the flags ask for and do not get.
func (p *process) warnings() []string {
	idle := features.WithoutEffect(p.gates())
	if len(idle) == 0 {
		return nil
	}
	return []string{"These feature gates have no effect in this binary (in parentheses: what it does instead): " + strings.Join(idle, ", ")}
}

func (p *process) gates() featuregate.FeatureGate {
	return p.ComponentGlobalsRegistry.FeatureGateFor(compatibility.DefaultKubeComponent)
}

// publishConfig shows the component configuration at /configz.
func publishConfig(c *config.CompletedConfig) (*configz.Config, error) {
	shown, err := configz.New(configzName)
	if err != nil {
		return nil, fmt.Errorf("register configz: %w", err)
	}
	if err := shown.Set(&c.ComponentConfig); err != nil {
		return nil, fmt.Errorf("set configz: %w", err)
	}
	return shown, nil
}

func (p *process) leaderElect() bool {
	return p.shadow == nil && ptr.Deref(p.ComponentConfig.Generic.LeaderElection.LeaderElect, true)
}

// runControllers runs them under the lock or locks that the flags ask for, or
// straight on when they ask for none.
func (p *process) runControllers(ctx context.Context, watchdog *leaderelection.HealthzAdaptor) error {
	everything := everything()
	if !p.leaderElect() {
		showAll(p.debug, forStart)
		err := p.lead(ctx, everything, nil)
		p.events.flush(flushTimeout)
		return err
	}
	showAll(p.debug, forLeadership)
	e, err := p.elections(ctx)
	if err != nil {
		return err
	}
	p.why.elections.Store(e)
	var background sync.WaitGroup
	defer background.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := p.offer(ctx, e, &background); err != nil {
		return err
	}
	if p.ComponentConfig.Generic.LeaderMigrationEnabled {
		return p.runMigrating(ctx, e, watchdog, everything)
	}
	return e.Run(ctx, p.mainLease(), watchdog, func(ctx context.Context, f *election.Fence) error { return p.lead(ctx, everything, f) })
}

// leads reports whether the controllers run and may write; those of a shadow may not.
func (p *process) leads() bool { return p.shadow == nil && p.leading.Load() > 0 }

// everything is the term of a process with one lock.
func everything() term {
	return term{name: component, token: row(names.ServiceAccountTokenController).start, controllers: NewControllerInitializers()}
}

// term is what one lock protects.
type term struct {
	// name labels the metrics of the term's caches.
	name string
	// token starts the service account token controller; nil leaves it to another lock.
	token InitFunc
	// controllers are started by canonical name.
	controllers map[string]InitFunc
	// started is called when all of them are running; may be nil.
	started func()
}

// lead runs the controllers of a term until ctx ends, and returns when their
// work has ended and their events are written. What they write stops at the fence.
func (p *process) lead(ctx context.Context, t term, fence *election.Fence) error {
	p.leading.Add(1)
	defer p.leading.Add(-1)
	running, stop := context.WithCancel(ctx)
	defer stop()
	cc, err := newControllerContext(running, p, t.name, fence)
	p.terms.add(cc.term)
	defer cc.close()
	if err == nil {
		err = StartControllers(running, cc, t.token, t.controllers)
	}
	if ctx.Err() != nil {
		err = nil // a stop in the middle of the start is no failure
	}
	if err != nil || ctx.Err() != nil {
		stop()
		return errors.Join(err, cc.drain(running))
	}
	cc.startCaches(running)
	if p.shadow != nil {
		cc.background(running, p.shadow.Run)
	}
	if t.started != nil {
		t.started()
	}
	<-running.Done()
	klog.FromContext(ctx).Info("Stopping the controllers", "timeout", p.ControllerShutdownTimeout)
	return cc.drain(running)
}
