package app

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/informers/monitor"
)

// Monitors watches resources of every kind, for controllers that follow all of
// them. What to follow is said before the caches are started.
func (cc ControllerContext) Monitors() *monitor.Set { return cc.monitors }

// wholeCaches returns which resources some controller of the term caches whole. It is
// asked when the caches have been started, and those that were asked for by then run.
func wholeCaches(shared *cache.Factory) func(monitor.Resource) (toolscache.SharedIndexInformer, bool) {
	started := sync.OnceValue(shared.AskedKinds)
	return func(r monitor.Resource) (toolscache.SharedIndexInformer, bool) {
		informer, ok := started()[schema.GroupKind{Group: r.Group, Kind: r.Kind}]
		return informer, ok
	}
}

// hearCaches has the shared caches report their errors to the monitors, which
// rely on them. They are not started yet.
func (cc ControllerContext) hearCaches(ctx context.Context) {
	for _, informer := range cc.caches.Asked() {
		if err := cc.monitors.Hear(informer); err != nil {
			klog.FromContext(ctx).Error(err, "Read errors of this shared cache will not be reported")
		}
	}
}

// startMonitors follows discovery until the term is closed.
func (cc ControllerContext) startMonitors(caches context.Context) {
	cc.term.reads(func() { cc.monitors.Run(caches) })
}
