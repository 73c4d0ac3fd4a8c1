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
	"k8s.io/utils/ptr"
)

// watchLease calls wake when the lease is gone or gets a holder that mayTake
// accepts, until ctx ends. What it returns waits for the watch to end. Without
// it, or where the watch is not allowed, a standby still looks every retry
// period.
func watchLease(ctx context.Context, client kubernetes.Interface, l Lease, mayTake func(holder string) bool, wake func()) (wait func()) {
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0,
		informers.WithNamespace(l.Namespace),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) {
			o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, l.Name).String()
		}))
	informer := factory.Coordination().V1().Leases().Informer()
	look := func(object any) {
		if seen, ok := object.(*coordinationv1.Lease); ok && mayTake(ptr.Deref(seen.Spec.HolderIdentity, "")) {
			wake()
		}
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    look,
		UpdateFunc: func(_, object any) { look(object) },
		DeleteFunc: func(any) { wake() },
	})
	if err != nil {
		klog.FromContext(ctx).Error(err, "Cannot watch the lease; taking it over will take longer", "lease", l.String())
		return func() {}
	}
	factory.StartWithContext(ctx)
	return factory.Shutdown
}
