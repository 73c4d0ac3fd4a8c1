package election

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
)

// watchLease calls look with each state of the lease, with nil when it is gone, until
// ctx ends. What it returns waits for the watch to end, but not for long. Without it, or
// where the watch is not allowed, a standby still looks every retry period.
func watchLease(ctx context.Context, client kubernetes.Interface, l Lease, look func(*coordinationv1.Lease)) (wait func()) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(l.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, l.Name).String()
		}))
	informer := factory.Coordination().V1().Leases().Informer()
	seen := func(object any) {
		if lease, ok := object.(*coordinationv1.Lease); ok {
			look(lease)
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    seen,
		UpdateFunc: func(_, object any) { seen(object) },
		DeleteFunc: func(any) { look(nil) },
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot watch the lease; taking it over will take longer", "lease", l.String())
		return func() {}
	}
	factory.StartWithContext(ctx)
	return func() { transport.AwaitWatches(factory.Shutdown) }
}
