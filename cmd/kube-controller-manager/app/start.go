package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/wait"
	genericapp "k8s.io/controller-manager/app"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
)

// startJitter spreads the starts of controllers by up to the start interval.
const startJitter = 1.0

// InitFunc makes a controller and starts it with ControllerContext.Go. The loop is
// served at /debug/controllers/<name>. For a controller that cannot run here, because
// an API or a flag is missing, the error is one of skip. Any other ends the process.
type InitFunc func(ctx context.Context, cc ControllerContext) (Loop, error)

// skipped is the error of an InitFunc that has a reason not to start.
type skipped struct{ why string }

func (s skipped) Error() string { return s.why }

// skip returns the error that makes StartControllers leave a controller out.
func skip(format string, args ...any) error { return skipped{fmt.Sprintf(format, args...)} }

// StartControllers starts the service account token controller first, because
// others may need the tokens it makes, and as the original does whatever
// --controllers says, then the enabled controllers in order of their names. The caches they wait for are started by the caller.
func StartControllers(ctx context.Context, cc ControllerContext, startSATokenController InitFunc, controllers map[string]InitFunc) error {
	if startSATokenController != nil {
		if err := cc.start(ctx, names.ServiceAccountTokenController, startSATokenController); err != nil {
			return err
		}
	}
	if err := cc.addCloud(ctx); err != nil {
		return err
	}
	for _, name := range sets.List(sets.KeySet(controllers)) {
		if !cc.enabled(name) {
			klog.FromContext(ctx).Info("Controller is disabled", "controller", name)
			cc.Debug().Set(name, debug.Disabled, "by --controllers")
			continue
		}
		if err := cc.start(ctx, name, controllers[name]); err != nil {
			return err
		}
	}
	return nil
}

// enabled reports whether --controllers lets the controller run.
func (cc ControllerContext) enabled(name string) bool {
	return genericapp.IsControllerEnabled(name, sets.NewString(names.DisabledByDefault()...), cc.Config.Generic.Controllers)
}

// start runs one InitFunc and records what became of it.
func (cc ControllerContext) start(ctx context.Context, name string, init InitFunc) error {
	logger := klog.FromContext(ctx)
	if err := ctx.Err(); err != nil {
		return err
	}
	cc.name = name
	logger.V(1).Info("Starting controller", "controller", name)
	loop, err := init(klog.NewContext(ctx, logger.WithValues("controller", name)), cc)
	var skipped skipped
	switch {
	case errors.As(err, &skipped):
		logger.Info("Skipping controller", "controller", name, "why", skipped.why)
		cc.Debug().Set(name, debug.Skipped, skipped.why)
		return nil
	case err != nil:
		logger.Error(err, "Controller cannot start", "controller", name)
		return fmt.Errorf("start %s: %w", name, err)
	}
	cc.show(ctx, loop)
	logger.Info("Started controller", "controller", name)
	return nil
}

// pause waits for a jittered start interval, each controller by itself, so that they do
// not all begin at once.
func (cc ControllerContext) pause(ctx context.Context) error {
	interval := cc.Config.Generic.ControllerStartInterval.Duration
	if interval <= 0 {
		return nil
	}
	timer := cc.Clock.NewTimer(wait.Jitter(interval, startJitter))
	defer timer.Stop()
	select {
	case <-timer.C():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// show adds the checks and the debug handler of a controller that has started.
func (cc ControllerContext) show(ctx context.Context, handler http.Handler) {
	loops := cc.term.of(cc.name)
	cc.process.health.add(healthOf(cc.name, loops))
	cc.process.live.add(healthOf(cc.name, loops))
	cc.process.ready.add(readinessOf(ctx, cc.name, loops))
	cc.Debug().Set(cc.name, debug.Started, "")
	cc.Debug().Handle(cc.name, handler)
}

// What controllers wait for.
const (
	forLeadership = "waits for leadership"
	forStart      = "has not been started yet"
	forPause      = "waits for the ConfigMap of --pause-configmap"
)

// showNext says of the controllers that waited for one of these that they wait for another thing.
func showNext(registry *debug.Registry, now string, before ...string) {
	for _, c := range registry.List() {
		if c.State == debug.Waiting && slices.Contains(before, c.Why) {
			registry.Set(c.Name, debug.Waiting, now)
		}
	}
}

// showAll lists every controller as waiting for a reason, before any is started.
func showAll(registry *debug.Registry, why string) {
	for _, name := range names.All() {
		registry.Set(name, debug.Waiting, why)
	}
}
