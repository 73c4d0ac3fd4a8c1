package cache

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
)

// Narrow makes informers that hold some of the objects of a resource, or little of each,
// with a client that may list and watch all of them. The one who makes them starts them.
type Narrow func(client kubernetes.Interface, resync time.Duration) *Factory

// Only returns what makes informers of the objects in a namespace, or in all, whose
// field has that value. They are trimmed like the shared ones.
func Only(namespace, field, value string) Narrow {
	return some(namespace, func(o *metav1.ListOptions) { o.FieldSelector = fields.OneTermEqualSelector(field, value).String() })
}

// Labelled is Only for the objects whose label has that value.
func Labelled(namespace, label, value string) Narrow {
	return some(namespace, func(o *metav1.ListOptions) { o.LabelSelector = label + "=" + value })
}

func some(namespace string, which func(*metav1.ListOptions)) Narrow {
	return func(client kubernetes.Interface, resync time.Duration) *Factory {
		return newFactory(client, resync, namespace, which, informers.WithTransform(Trim))
	}
}

// TrimmedBy returns what makes informers of all objects, with a trim of their own.
func TrimmedBy(trim toolscache.TransformFunc) Narrow {
	return func(client kubernetes.Interface, resync time.Duration) *Factory {
		return NewFactory(client, resync, informers.WithTransform(trim))
	}
}

// Values returns the values that an index has objects under, in no order.
func Values(indexer toolscache.Indexer, index Index) []string {
	return indexer.ListIndexFuncValues(index.name)
}
