package app

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/pause"
	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// holding is what holds the writes of a process back. Under leader migration there are two
// terms, which share it and end together.
type holding struct {
	once   sync.Once
	limits *act.Limits    // nil for nothing
	pause  *pause.Watcher // nil for none
	err    error
}

// addLimits has the term heed the brake and the pause. It returns when it is known what is
// paused: nothing of the term may write before.
func (cc *ControllerContext) addLimits(ctx context.Context) error {
	h := &cc.process.holding
	h.once.Do(func() {
		cc.addBrake()
		h.pause, h.err = cc.followPause(ctx)
		h.limits = cc.limits
	})
	cc.limits = h.limits
	if h.pause == nil || h.err != nil {
		return h.err
	}
	err := h.pause.Wait(ctx)
	if err == nil {
		next := forStart
		if cc.process.leaderElect() {
			next = forLeadership // those of another term wait on
		}
		showNext(cc.Debug(), next, forPause)
	}
	return err
}

// followPause follows what --pause-configmap pauses. Its reads are those of a cache: after
// an outage of the API server it is heard no later than what it pauses.
func (cc *ControllerContext) followPause(ctx context.Context) (*pause.Watcher, error) {
	from := cc.process.PauseConfigMap
	if from == (types.NamespacedName{}) {
		return nil, nil
	}
	config, err := cc.RootClients.Config("pause")
	if err != nil {
		return nil, fmt.Errorf("configure the client of the pause: %w", err)
	}
	client, err := kubernetes.NewForConfig(transport.Reads(config, klog.FromContext(ctx)))
	if err != nil {
		return nil, fmt.Errorf("make the client of the pause: %w", err)
	}
	limits := cc.heldTo()
	watcher, err := pause.New(pause.Options{
		Source: latest(client, from), ConfigMap: from, Events: cc.process.EventRecorder,
		Names: pause.Names{All: names.All(), Aliases: names.KCMControllerAliases()},
		Pause: func(r pause.Rules) { limits.Pause(r.Paused) },
	})
	if err != nil {
		return nil, err
	}
	cc.Debug().PausedBy(func(controller string) string { return limits.Paused(controller, "") })
	showNext(cc.Debug(), forPause, forLeadership, forStart)
	cc.term.reads(func() { watcher.Run(ctx) })
	return watcher, nil
}

// latest lists and watches a ConfigMap. Each list is of the latest state.
func latest(client kubernetes.Interface, of types.NamespacedName) cache.ListerWatcher {
	all := client.CoreV1().ConfigMaps(of.Namespace)
	named := fields.OneTermEqualSelector(metav1.ObjectNameField, of.Name).String()
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector, o.ResourceVersion, o.ResourceVersionMatch = named, "", ""
			return all.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = named
			return all.Watch(ctx, o)
		},
	}, client)
}

// heldTo is what holds the writes of the process back.
func (cc *ControllerContext) heldTo() *act.Limits {
	if cc.limits == nil {
		cc.limits = &act.Limits{}
	}
	return cc.limits
}

// paused is why nothing is written for a controller in a namespace; empty if it may write.
func (cc ControllerContext) paused(controller, namespace string) string {
	if cc.limits == nil {
		return ""
	}
	return cc.limits.Paused(controller, namespace)
}

// heed has a loop wait while it is paused.
func (cc ControllerContext) heed(loop Loop) {
	if l, ok := loop.(interface{ Heed(string, runner.Pause) }); ok && cc.limits != nil {
		l.Heed(cc.name, cc.limits)
	}
}

// withholding makes no client of a controller that writes while it is paused.
func (cc ControllerContext) withholding(config *rest.Config, controller string) *rest.Config {
	if cc.limits == nil {
		return config
	}
	return transport.Withholding(config, func(ctx context.Context, t transport.Target) error {
		if err := held(cc.limits.Paused(controller, t.Namespace)); err != nil {
			return err
		}
		return cc.braked(ctx, t)
	})
}

func held(why string) error {
	if why == "" {
		return nil
	}
	return &consistency.Withheld{Why: why}
}

// accounts is the client by which controllers get their service accounts and tokens. No
// token is asked for while all controllers of an account are paused. A namespace that is
// paused does not matter: accounts belong to the process, as its lease does.
func (cc ControllerContext) accounts() (typedcorev1.CoreV1Interface, error) {
	if cc.limits == nil {
		return cc.process.Client.CoreV1(), nil
	}
	using := controllersByAccount()
	client, err := kubernetes.NewForConfig(transport.Withholding(rest.AddUserAgent(cc.process.Kubeconfig, component), func(_ context.Context, t transport.Target) error {
		if t.Subresource != "token" {
			return nil
		}
		return held(cc.allPaused(using[t.Name]))
	}))
	if err != nil {
		return nil, fmt.Errorf("make the client of the service accounts: %w", err)
	}
	return client.CoreV1(), nil
}

// allPaused is why none of some controllers may write; empty if one may, or there is none.
func (cc ControllerContext) allPaused(controllers []string) (why string) {
	for _, controller := range controllers {
		if why = cc.limits.Paused(controller, metav1.NamespaceNone); why == "" {
			return ""
		}
	}
	return why
}

func controllersByAccount() map[string][]string {
	using := map[string][]string{}
	for _, c := range Controllers() {
		if !c.Root {
			using[c.Account] = append(using[c.Account], c.Name)
		}
	}
	return using
}

// cloudClients are what a cloud provider makes its own clients with: nobody knows for
// which controller. They write nothing while every controller is paused, or the namespace.
func (cc ControllerContext) cloudClients() clientbuilder.ControllerClientBuilder {
	if cc.limits == nil {
		return cc.Clients
	}
	return withheldClients{cc.Clients, cc}
}

type withheldClients struct {
	clientbuilder.ControllerClientBuilder
	cc ControllerContext
}

// Config returns the configuration of a client of the service account.
func (c withheldClients) Config(name string) (*rest.Config, error) {
	config, err := c.ControllerClientBuilder.Config(name)
	if err != nil {
		return nil, err
	}
	return c.cc.withholding(config, ""), nil
}

// ConfigOrDie is Config for those who cannot go on without it.
func (c withheldClients) ConfigOrDie(name string) *rest.Config {
	return c.cc.withholding(c.ControllerClientBuilder.ConfigOrDie(name), "")
}

// Client returns a client of the service account.
func (c withheldClients) Client(name string) (kubernetes.Interface, error) {
	config, err := c.Config(name)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}

// ClientOrDie is Client for those who cannot go on without it.
func (c withheldClients) ClientOrDie(name string) kubernetes.Interface {
	return kubernetes.NewForConfigOrDie(c.ConfigOrDie(name))
}
