package app

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	"k8s.io/controller-manager/pkg/clientbuilder"
	"k8s.io/klog/v2"
	kcmconfig "k8s.io/kube-controller-manager/config/v1alpha1"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/election"
	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/informers/monitor"
	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
	"github.com/kube-kcm/kube-controller-manager/pkg/why"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
)

const (
	// mapperReset is how often the REST mapper forgets what discovery said.
	mapperReset = 30 * time.Second
	// apiServerTimeout is how long a start waits for an API server that cannot be reached.
	apiServerTimeout = 10 * time.Second
	// startPatience is how long a start asks again for what is refused for now.
	startPatience = time.Minute
)

// ControllerContext is what the controllers of one term are made from. Constructors
// get it by value, with their controller's name and row in it.
type ControllerContext struct {
	// Config is the component configuration.
	Config *kcmconfig.KubeControllerManagerConfiguration
	// Gates are the feature gates, read once, when a controller is wired.
	Gates featuregate.FeatureGate
	// Clock is the one clock of the process.
	Clock clock.WithTicker
	// Clients makes the clients of controllers, by service account name.
	Clients clientbuilder.ControllerClientBuilder
	// RootClients makes clients with the credentials of --kubeconfig.
	RootClients clientbuilder.ControllerClientBuilder
	// Informers are the shared, trimmed caches.
	Informers informers.SharedInformerFactory
	// RESTMapper maps kinds to resources as the API server serves them.
	RESTMapper *restmapper.DeferredDiscoveryRESTMapper
	// Available are the resources that the API server served at the start of the term.
	Available map[schema.GroupVersionResource]bool
	// CachesStarted is closed when the shared caches have been started.
	CachesStarted chan struct{}
	// Resync draws a resync period: random, so that not all controllers list at once.
	Resync func() time.Duration

	name        string
	row         Controller // whose constructor runs
	term        *running
	process     *process
	cacheClient kubernetes.Interface // reads what the caches of single controllers hold
	caches      *cache.Factory
	reads       *monitor.Reads
	narrow      *[]*cache.Factory
	monitors    *monitor.Set
	live        consistency.List
	kinds       meta.RESTMapper            // of the built-in kinds, as served at the start of the term
	wholes      *cache.Factory             // what the loops of a cloud read; nil without a provider
	served      *atomic.Pointer[why.Kinds] // what questions may be about, as discovery says it now
	limits      *act.Limits                // what holds writes back; nil for nothing
}

func newControllerContext(ctx context.Context, p *process, termName string, fence *election.Fence) (ControllerContext, error) {
	root := clientbuilder.SimpleControllerClientBuilder{ClientConfig: transport.Finishing(ctx, p.Kubeconfig, fence)}
	cc := ControllerContext{
		Config:        &p.ComponentConfig,
		Gates:         p.ComponentGlobalsRegistry.FeatureGateFor(compatibility.DefaultKubeComponent),
		Clock:         clock.RealClock{},
		RootClients:   root,
		CachesStarted: make(chan struct{}),
		Resync:        resyncIn(p.ComponentConfig.Generic.MinResyncPeriod.Duration),
		term:          newRunning(p.ControllerShutdownTimeout),
		process:       p,
		narrow:        &[]*cache.Factory{},
		served:        &atomic.Pointer[why.Kinds]{},
	}
	if err := waitForAPIServer(ctx, p.Client, p.Kubeconfig.Host, apiServerTimeout, startPatience); err != nil {
		return cc, fmt.Errorf("failed to wait for apiserver being healthy: %w", err)
	}
	if err := cc.addLimits(ctx); err != nil {
		return cc, err
	}
	accounts, err := cc.accounts()
	if err != nil {
		return cc, err
	}
	cc.Clients = controllerClients(ctx, p, root, accounts, fence)
	if err := cc.addInformers(ctx, termName); err != nil {
		return cc, err
	}
	if err := cc.addDiscovery(ctx); err != nil {
		return cc, err
	}
	return cc, cc.addLiveReads()
}

// resyncIn draws from [least, 2*least), a new number each time, as far as a duration holds it.
func resyncIn(least time.Duration) func() time.Duration {
	return func() time.Duration {
		drawn := float64(least) * (rand.Float64() + 1)
		if drawn >= math.MaxInt64 {
			return math.MaxInt64
		}
		return time.Duration(drawn)
	}
}

// reading makes the configuration of a client that fills caches.
func (p *process) reading(ctx context.Context, config *rest.Config) (*rest.Config, error) {
	config = transport.Reads(p.rates.Limited(config, 1, 1), klog.FromContext(ctx))
	if !p.BatchWatchReads {
		return config, nil
	}
	return transport.Batched(config)
}

// addInformers makes the shared caches, with clients of their own so that they
// do not compete with a controller's writes.
func (cc *ControllerContext) addInformers(ctx context.Context, termName string) error {
	config, err := cc.RootClients.Config("shared-informers")
	if err != nil {
		return fmt.Errorf("configure the client of the shared caches: %w", err)
	}
	if config, err = cc.process.reading(ctx, config); err != nil {
		return fmt.Errorf("make the connections of the shared caches: %w", err)
	}
	connections, err := rest.HTTPClientFor(config)
	if err != nil {
		return fmt.Errorf("make the connections of the shared caches: %w", err)
	}
	if cc.cacheClient, err = kubernetes.NewForConfigAndClient(config, connections); err != nil {
		return fmt.Errorf("make the client of the caches of single controllers: %w", err)
	}
	// What a single controller's cache reads says nothing about the shared one.
	cc.reads = &monitor.Reads{}
	noted := *connections
	noted.Transport = cc.reads.Wrap(connections.Transport)
	client, err := kubernetes.NewForConfigAndClient(config, &noted)
	if err != nil {
		return fmt.Errorf("make the client of the shared caches: %w", err)
	}
	// The name labels the informer_* metrics; it is free again when the term ends.
	name, err := toolscache.NewInformerName(termName)
	if err != nil {
		return fmt.Errorf("set the names of the shared caches: %w", err)
	}
	cc.term.onClose(name.Release)
	cc.caches = cache.NewFactory(client, cc.Resync(), informers.WithTransform(cc.process.trim()), informers.WithInformerName(name))
	cc.Informers = cc.caches
	cc.followNamespaces()
	return nil
}

// addMonitors makes the caches that hold objects of every kind as metadata.
func (cc *ControllerContext) addMonitors(ctx context.Context, client discovery.DiscoveryInterface) error {
	config, err := cc.RootClients.Config("metadata-informers")
	if err != nil {
		return fmt.Errorf("configure the client of the metadata caches: %w", err)
	}
	if config, err = cc.process.reading(ctx, config); err != nil {
		return fmt.Errorf("make the connections of the metadata caches: %w", err)
	}
	metadataClient, err := metadata.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make the client of the metadata caches: %w", err)
	}
	cc.monitors = monitor.New(monitor.Options{
		Discover: cc.noting(client.ServerGroupsAndResources), Metadata: metadataClient,
		Whole: wholeCaches(cc.caches), Reads: cc.reads, Clock: cc.Clock,
	})
	return nil
}

// narrowed makes a cache of the few objects that one controller reads of a
// resource, where the shared one would hold all of them. It starts and stops
// with the shared caches.
func (cc ControllerContext) narrowed(of cache.Narrow) *cache.Factory {
	factory := of(cc.cacheClient, cc.Resync())
	*cc.narrow = append(*cc.narrow, factory)
	return factory
}

// addDiscovery makes the REST mapper and asks what is served.
func (cc *ControllerContext) addDiscovery(ctx context.Context) error {
	client, err := cc.RootClients.DiscoveryClient("controller-discovery")
	if err != nil {
		return fmt.Errorf("make the discovery client: %w", err)
	}
	cc.RESTMapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client))
	cc.background(ctx, func(ctx context.Context) {
		wait.UntilWithContext(ctx, func(context.Context) { cc.RESTMapper.Reset() }, mapperReset)
	})
	var served []*metav1.APIResourceList
	if cc.Available, served, err = availableResources(ctx, client); err != nil {
		return err
	}
	cc.kinds = kindsOf(served)
	cc.served.Store(why.KindsOf(served))
	return cc.addMonitors(ctx, client)
}

// startCaches starts every cache that a constructor asked for.
func (cc *ControllerContext) startCaches(ctx context.Context) {
	caches, stop := context.WithCancel(context.WithoutCancel(ctx))
	cc.background(ctx, cc.watchLoops)
	cc.hearCaches(ctx)
	cc.Informers.StartWithContext(caches)
	for _, factory := range *cc.narrow {
		factory.StartWithContext(caches)
	}
	cc.startMonitors(caches)
	// Caches stay while work in flight ends, and stop when the term is closed.
	cc.term.onClose(func() {
		stop()
		var all sync.WaitGroup
		all.Go(cc.Informers.Shutdown)
		for _, factory := range *cc.narrow {
			all.Go(factory.Shutdown)
		}
		transport.AwaitWatches(all.Wait)
	})
	close(cc.CachesStarted)
	cc.explain()
}

// Debug is where controllers show what they know.
func (cc ControllerContext) Debug() *debug.Registry { return cc.process.debug }
