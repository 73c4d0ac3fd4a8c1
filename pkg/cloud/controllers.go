package cloud

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/controllers/nodelifecycle"
	"k8s.io/cloud-provider/controllers/route"
	"k8s.io/cloud-provider/controllers/service"
	"k8s.io/component-base/metrics/prometheus/controllers"

	_ "github.com/kube-kcm/kube-controller-manager/pkg/features" // the library reads a gate that must be known
)

// ErrNotSupported is of a loop for which the provider has nothing.
var ErrNotSupported = errors.New("the cloud provider does not support it")

// Options are what each loop is made from.
type Options struct {
	// Name is the canonical name of the controller.
	Name string
	// Cloud is the provider.
	Cloud cloudprovider.Interface
	// Config is that of the loop's client.
	Config *rest.Config
	// Informers are of whole objects, and not started yet.
	Informers informers.SharedInformerFactory
	// ClusterName is what the provider calls the cluster.
	ClusterName string
	// Wrote is called with each answer to a write, other than of events; may be nil.
	Wrote func(verb string, err error)
	// Metrics count the loops that run.
	Metrics *controllers.ControllerManagerMetrics
}

// ServiceLB keeps the load balancers of Services.
func ServiceLB(o Options, workers int) (*Loop, error) {
	if _, ok := o.Cloud.LoadBalancer(); !ok {
		return nil, fmt.Errorf("load balancers: %w", ErrNotSupported)
	}
	l, client, err := o.loop()
	if err != nil {
		return nil, err
	}
	core := o.Informers.Core().V1()
	c, err := service.New(provider{o.Cloud, l.calls}, client, services{core.Services(), l.gate}, core.Nodes(), o.ClusterName, utilfeature.DefaultFeatureGate)
	if err != nil {
		return nil, fmt.Errorf("make the loop of load balancers: %w", err)
	}
	l.caches = []toolscache.InformerSynced{core.Services().Informer().HasSynced, core.Nodes().Informer().HasSynced}
	l.run = func(ctx context.Context) { c.Run(ctx, workers, o.Metrics) }
	return l, nil
}

// NodeRoutes keeps the routes to the pods of nodes, within the cluster CIDRs.
func NodeRoutes(o Options, clusterCIDRs []*net.IPNet, period time.Duration) (*Loop, error) {
	if _, ok := o.Cloud.Routes(); !ok {
		return nil, fmt.Errorf("routes: %w", ErrNotSupported)
	}
	if len(clusterCIDRs) == 0 {
		return nil, errors.New("--cluster-cidr is empty") // the library would end the process
	}
	l, client, err := o.loop()
	if err != nil {
		return nil, err
	}
	nodes := o.Informers.Core().V1().Nodes()
	theirs, _ := provider{o.Cloud, l.calls}.Routes()
	c, err := route.New(theirs, client, nodes, o.ClusterName, clusterCIDRs)
	if err != nil {
		return nil, fmt.Errorf("make the loop of routes: %w", err)
	}
	l.caches = []toolscache.InformerSynced{nodes.Informer().HasSynced}
	l.run = func(ctx context.Context) { c.Run(ctx, period, o.Metrics) }
	return l, nil
}

// NodeLifecycle deletes nodes whose instances are gone, and taints those that are shut down.
func NodeLifecycle(o Options, period time.Duration) (*Loop, error) {
	_, old := o.Cloud.Instances()
	if _, ok := o.Cloud.InstancesV2(); !ok && !old {
		return nil, fmt.Errorf("instances: %w", ErrNotSupported)
	}
	l, client, err := o.loop()
	if err != nil {
		return nil, err
	}
	nodes, turn := o.Informers.Core().V1().Nodes(), newPass()
	c, err := nodelifecycle.NewCloudNodeLifecycleController(informer{nodes, turn, l.gate}, clientset{client, turn}, provider{o.Cloud, l.calls}, period)
	if err != nil {
		return nil, fmt.Errorf("make the loop of instances: %w", err)
	}
	l.caches = []toolscache.InformerSynced{nodes.Informer().HasSynced}
	l.run = func(ctx context.Context) { c.Run(ctx, o.Metrics) }
	return l, nil
}

// loop returns a loop that does nothing yet, and its client.
func (o Options) loop() (*Loop, kubernetes.Interface, error) {
	g := newGate()
	config := rest.CopyConfig(o.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &requests{next: next, gate: g, wrote: o.wrote} })
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, nil, fmt.Errorf("make the client of %s: %w", o.Name, err)
	}
	return &Loop{name: o.Name, provider: o.Cloud.ProviderName(), gate: g, calls: newCalls(g)}, client, nil
}

// aboutEvents reports whether a path is that of the events of a namespace.
func aboutEvents(path string) bool {
	parts := strings.Split(path, "/")
	i := slices.Index(parts, "namespaces")
	return i >= 0 && len(parts) > i+2 && parts[i+2] == "events"
}

func (o Options) wrote(req *http.Request, err error) {
	if o.Wrote == nil || aboutEvents(req.URL.Path) {
		return
	}
	verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[req.Method]
	o.Wrote(verb, err)
}
