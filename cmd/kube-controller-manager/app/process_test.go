package app

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/authorization/path"
	"k8s.io/apiserver/pkg/authorization/union"
	apiserver "k8s.io/apiserver/pkg/server"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/record"
	"k8s.io/component-base/compatibility"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/config"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
)

// deadline bounds every wait of these tests.
const deadline = 20 * time.Second

// pretendLoop is a controller without work.
type pretendLoop struct {
	http.Handler
	name    string
	started atomic.Bool
	stuck   atomic.Bool
	// leave is closed to let Run return after its context has ended; nil leaves at once.
	leave chan struct{}
}

func (l *pretendLoop) Name() string  { return l.name }
func (l *pretendLoop) Started() bool { return l.started.Load() }
func (l *pretendLoop) Run(ctx context.Context) {
	<-ctx.Done()
	if l.leave != nil {
		<-l.leave
	}
}

func (l *pretendLoop) Check(*http.Request) error {
	if l.stuck.Load() {
		return errors.New("a worker is stuck")
	}
	return nil
}

// flags is what --flagz shows in these tests.
type flags map[string]string

func (f flags) GetFlagz() map[string]string { return f }

// everyone knows two users: admin, who may do anything, and the anonymous one.
func everyone(req *http.Request) (*authenticator.Response, bool, error) {
	switch req.Header.Get("Authorization") {
	case "":
		return &authenticator.Response{User: &user.DefaultInfo{Name: user.Anonymous, Groups: []string{user.AllUnauthenticated}}}, true, nil
	case "Bearer admin":
		return &authenticator.Response{User: &user.DefaultInfo{Name: "admin"}}, true, nil
	}
	return nil, false, errors.New("invalid bearer token")
}

func onlyAdmin(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	if a.GetUser().GetName() == "admin" {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func testConfig(t *testing.T) *config.CompletedConfig {
	t.Helper()
	always, err := path.NewAuthorizer([]string{"/healthz", "/readyz", "/livez"})
	if err != nil {
		t.Fatal(err)
	}
	registry := compatibility.NewComponentGlobalsRegistry()
	version := compatibility.NewEffectiveVersionFromString("1.36.3", "1.33", "1.33")
	if err := registry.Register(compatibility.DefaultKubeComponent, version, utilfeature.DefaultMutableFeatureGate.DeepCopyAndReset()); err != nil {
		t.Fatal(err)
	}
	broadcaster := record.NewBroadcaster()
	// An address that nobody has: these tests do without an API server.
	kubeconfig := &rest.Config{Host: "https://192.0.2.1"}
	c := (&config.Config{
		Client:                    kubernetes.NewForConfigOrDie(kubeconfig),
		Kubeconfig:                kubeconfig,
		Authentication:            apiserver.AuthenticationInfo{Authenticator: authenticator.RequestFunc(everyone)},
		Authorization:             apiserver.AuthorizationInfo{Authorizer: union.New(always, authorizer.AuthorizerFunc(onlyAdmin))},
		EventBroadcaster:          broadcaster,
		EventRecorder:             broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component}),
		Flagz:                     flags{"controllers": "*"},
		ComponentGlobalsRegistry:  registry,
		ControllerShutdownTimeout: 10 * time.Second,
	}).Complete()
	c.ComponentConfig.PersistentVolumeBinderController.VolumeConfiguration.EnableDynamicProvisioning = ptr.To(true)
	generic := &c.ComponentConfig.Generic
	c.ComponentConfig.Kind, c.ComponentConfig.APIVersion = "KubeControllerManagerConfiguration", "kubecontrollermanager.config.k8s.io/v1alpha1"
	generic.Controllers = []string{"*"}
	generic.Debugging.EnableProfiling, generic.Debugging.EnableContentionProfiling = ptr.To(true), ptr.To(false)
	generic.LeaderElection.LeaderElect = ptr.To(false)
	return c
}

func testProcess(t *testing.T, c *config.CompletedConfig) *process {
	t.Helper()
	p := newProcess(t.Context(), c)
	t.Cleanup(p.events.shutdown)
	return p
}

// testContext is enough of a context to start controllers that need no API.
func testContext(t *testing.T, controllers ...string) ControllerContext {
	t.Helper()
	c := testConfig(t)
	c.ComponentConfig.Generic.Controllers = controllers
	p := testProcess(t, c)
	return ControllerContext{
		Config: &c.ComponentConfig, Clock: clock.RealClock{}, process: p,
		term: newRunning(c.ControllerShutdownTimeout), CachesStarted: make(chan struct{}),
	}
}

// eventually waits until what holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	end := time.After(deadline)
	for tick := time.Tick(5 * time.Millisecond); !holds(); {
		select {
		case <-tick:
		case <-end:
			t.Fatalf("not within %s: %s", deadline, what)
		}
	}
}

// stateOf is the row of a controller at /debug/controllers/.
func stateOf(cc ControllerContext, name string) debug.Controller {
	for _, c := range cc.Debug().List() {
		if c.Name == name {
			return c
		}
	}
	return debug.Controller{}
}
