package app

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/server/flagz"
	"k8s.io/apiserver/pkg/server/mux"
	"k8s.io/apiserver/pkg/server/statusz"
	"k8s.io/component-base/compatibility"
	componentbaseconfig "k8s.io/component-base/config"
	_ "k8s.io/component-base/logs/json/register"          // --logging-format=json
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // rest_client_*, leader_election_*, informer_*
	"k8s.io/component-base/metrics/prometheus/slis"
	_ "k8s.io/component-base/metrics/prometheus/version"   // kubernetes_build_info
	_ "k8s.io/component-base/metrics/prometheus/workqueue" // workqueue_*
	zpagesfeatures "k8s.io/component-base/zpages/features"
	genericapp "k8s.io/controller-manager/app"
)

const (
	// debugPrefix is where the controllers show what they know.
	debugPrefix = "/debug/controllers/"
	// whyPath is where the process says why an object is as it is.
	whyPath = "/debug/why"
	// shadowPath is where a shadow reports what it has compared.
	shadowPath = "/debug/shadow"
	// serverShutdown bounds how long requests in flight keep a stopping process.
	serverShutdown = time.Second
)

// serve opens the secure port, if there is one, and returns what closes it.
func (p *process) serve(ctx context.Context) (stop func(), err error) {
	if p.SecureServing == nil || p.SecureServing.Listener == nil {
		return func() {}, nil
	}
	handler := p.handler()
	stopped := make(chan struct{})
	serving, opened := steady(*p.SecureServing)
	drained, listenerStopped, err := serving.Serve(handler, serverShutdown, stopped)
	if err != nil {
		close(stopped)
		return nil, fmt.Errorf("serve on %s: %w", p.SecureServing.Listener.Addr(), err)
	}
	opened()
	return func() {
		close(stopped)
		<-drained
		<-listenerStopped
	}, nil
}

// handler is all that the secure port serves, behind authentication and
// authorization.
func (p *process) handler() http.Handler {
	return genericapp.BuildHandlerChain(p.endpoints(), &p.Authorization, &p.Authentication)
}

// endpoints are the paths, without access control.
func (p *process) endpoints() *mux.PathRecorderMux {
	debugging := p.ComponentConfig.Generic.Debugging
	paths := genericapp.NewBaseHandler(&componentbaseconfig.DebuggingConfiguration{
		EnableProfiling:           *debugging.EnableProfiling,
		EnableContentionProfiling: *debugging.EnableContentionProfiling,
	}, p.health)
	paths.Handle("/livez", p.live)
	paths.Handle("/readyz", p.ready)
	paths.Handle(strings.TrimSuffix(debugPrefix, "/"), p.debug)
	paths.HandlePrefix(debugPrefix, p.debug)
	paths.Handle(whyPath, p.why)
	if p.shadow != nil {
		paths.Handle(shadowPath, p.shadow)
	}
	gates := p.ComponentGlobalsRegistry.FeatureGateFor(compatibility.DefaultKubeComponent)
	if gates.Enabled(zpagesfeatures.ComponentFlagz) && p.shownFlags != nil {
		paths.Handle(flagz.DefaultFlagzPath, p.shownFlags)
	}
	if gates.Enabled(zpagesfeatures.ComponentStatusz) {
		effective := p.ComponentGlobalsRegistry.EffectiveVersionFor(compatibility.DefaultKubeComponent)
		statusz.Install(paths, component, statusz.NewRegistry(effective, statusz.WithListedPaths(paths.ListedPaths())))
	}
	slis.SLIMetricsWithReset{}.Install(paths)
	return paths
}
