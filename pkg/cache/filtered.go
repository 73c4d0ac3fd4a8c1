package cache

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
)

// Filtered returns informers that hold only the objects which a field selector
// lets through, for a controller that needs a few objects of a large resource.
// The one who makes them starts them. They are trimmed like the shared ones.
func Filtered(client kubernetes.Interface, resync time.Duration, selector string) informers.SharedInformerFactory {
	return FilteredIn(client, metav1.NamespaceAll, resync, selector)
}

// FilteredIn is Filtered for the objects of one namespace.
func FilteredIn(client kubernetes.Interface, namespace string, resync time.Duration, selector string) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactoryWithOptions(client, resync,
		informers.WithNamespace(namespace), informers.WithTransform(Trim),
		informers.WithTweakListOptions(func(o *metav1.ListOptions) { o.FieldSelector = selector }))
}

// Values returns the values that an index has objects under, in no order.
func Values(indexer toolscache.Indexer, index Index) []string {
	return indexer.ListIndexFuncValues(index.name)
}
