package quota

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Usage is what an object takes of a quota.
type Usage struct {
	// Used are the quantities by their names in a quota.
	Used corev1.ResourceList
	// Traits are what scopes look at.
	Traits Traits
	// Until is when Used gives way to Then, zero if it does not by itself.
	Until time.Time
	// Then is what is used from Until on.
	Then corev1.ResourceList
}

// Rules say how objects are measured, and what of other objects it depends on.
type Rules struct {
	// IgnorePodLevel leaves the resources of the pod as a whole out, for clusters
	// that do not know them.
	IgnorePodLevel bool
	// IgnoreExtended counts device claims by their classes only, and not as the
	// extended resources that the classes offer.
	IgnoreExtended bool
	// ExtendedResource is the extended resource that a device class offers, empty if none.
	ExtendedResource func(class string) string
	// Pod finds a pod.
	Pod func(namespace, name string) *corev1.Pod
	// MadeFor returns the device claims that say that they were made for the
	// extended resources of a pod.
	MadeFor func(pod *corev1.Pod) []*resourceapi.ResourceClaim
}

// Measure returns what an object of a resource uses. An object that is known as
// metadata only counts as one of its kind.
func (r Rules) Measure(of schema.GroupResource, object metav1.Object, now time.Time) Usage {
	switch o := object.(type) {
	case *corev1.Pod:
		return r.pod(o, now)
	case *corev1.Service:
		return service(o)
	case *corev1.PersistentVolumeClaim:
		return claim(o)
	case *resourceapi.ResourceClaim:
		return r.deviceClaim(o, now)
	}
	return counted(of)
}

// counted is what any object uses: one of its kind, under both of its names.
func counted(of schema.GroupResource) Usage {
	used := corev1.ResourceList{countName(of): one()}
	switch alias := corev1.ResourceName(of.Resource); alias {
	case corev1.ResourceConfigMaps, corev1.ResourceQuotas, corev1.ResourceReplicationControllers, corev1.ResourceSecrets:
		if of.Group == "" {
			used[alias] = one()
		}
	}
	return Usage{Used: used}
}

func one() resource.Quantity { return number(1) }

func number(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }

// Measurable reports whether an object holds what is needed to measure it: those
// that count for more than themselves have to be known whole.
func Measurable(of schema.GroupResource, object metav1.Object) bool {
	ok := true
	switch of {
	case Pods:
		_, ok = object.(*corev1.Pod)
	case Services:
		_, ok = object.(*corev1.Service)
	case Claims:
		_, ok = object.(*corev1.PersistentVolumeClaim)
	case DeviceClaims:
		_, ok = object.(*resourceapi.ResourceClaim)
	}
	return ok
}
