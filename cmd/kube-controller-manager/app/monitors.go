package app

import (
	"context"
	"reflect"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/monitor"
)

// Monitors watches resources of every kind, for controllers that follow all of
// them. What to follow is said before the caches are started.
func (cc ControllerContext) Monitors() *monitor.Set { return cc.monitors }

// wholeCaches returns which resources some controller of the term caches whole:
// those whose informers have been started.
func wholeCaches(shared informers.SharedInformerFactory) func(monitor.Resource) (toolscache.SharedIndexInformer, bool) {
	started := sync.OnceValue(func() map[schema.GroupKind]string { return startedKinds(shared) })
	return func(r monitor.Resource) (toolscache.SharedIndexInformer, bool) {
		version, ok := started()[schema.GroupKind{Group: r.Group, Kind: r.Kind}]
		if !ok {
			return nil, false
		}
		informer, err := shared.ForResource(r.GroupResource().WithVersion(version))
		if err != nil {
			return nil, false
		}
		return informer.Informer(), true
	}
}

// hearCaches has the shared caches report their errors to the monitors, which
// rely on them. They are not started yet.
func (cc ControllerContext) hearCaches(ctx context.Context) {
	for _, informer := range cc.caches.all() {
		if err := cc.monitors.Hear(informer); err != nil {
			klog.FromContext(ctx).Error(err, "Read errors of this shared cache will not be reported")
		}
	}
}

// startedKinds returns the version at which each kind is cached.
func startedKinds(shared informers.SharedInformerFactory) map[schema.GroupKind]string {
	asked := make(chan struct{})
	close(asked) // it reports the types and whether they are synced; only the types matter here
	kinds := map[schema.GroupKind]string{}
	for kind := range shared.WaitForCacheSync(asked) {
		object, ok := reflect.New(kind.Elem()).Interface().(runtime.Object)
		if !ok {
			continue
		}
		gvks, _, err := scheme.Scheme.ObjectKinds(object)
		if err != nil {
			continue
		}
		for _, gvk := range gvks {
			kinds[gvk.GroupKind()] = gvk.Version
		}
	}
	return kinds
}

// startMonitors follows discovery until the term is closed.
func (cc ControllerContext) startMonitors(caches context.Context) {
	var running sync.WaitGroup
	running.Go(func() { cc.monitors.Run(caches) })
	cc.term.onClose(running.Wait)
}
