package cache

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
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

// Narrow makes informers that hold some of the objects of a resource, with a client
// that may list and watch all of them. The one who makes them starts them.
type Narrow func(client kubernetes.Interface, resync time.Duration) informers.SharedInformerFactory

// Only returns what makes informers of the objects in a namespace, or in all, whose
// field has that value.
func Only(namespace, field, value string) Narrow {
	return func(client kubernetes.Interface, resync time.Duration) informers.SharedInformerFactory {
		return FilteredIn(client, namespace, resync, fields.OneTermEqualSelector(field, value).String())
	}
}

// With returns what makes informers with these options, trimmed like the shared ones
// unless the options say otherwise.
func With(options ...informers.SharedInformerOption) Narrow {
	return func(client kubernetes.Interface, resync time.Duration) informers.SharedInformerFactory {
		return informers.NewSharedInformerFactoryWithOptions(client, resync,
			append([]informers.SharedInformerOption{informers.WithTransform(Trim)}, options...)...)
	}
}

// Values returns the values that an index has objects under, in no order.
func Values(indexer toolscache.Indexer, index Index) []string {
	return indexer.ListIndexFuncValues(index.name)
}
