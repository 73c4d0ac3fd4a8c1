package resourcequota

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/quota"
)

// total adds up each name over the resources that count towards it. A name that
// counts one which is stuck is left out and noted there; so is one that nothing
// counts.
func total(counts map[corev1.ResourceName][]schema.GroupResource, sums map[schema.GroupResource]corev1.ResourceList, stuck map[schema.GroupResource]*frozen) corev1.ResourceList {
	used := corev1.ResourceList{}
	for name, resources := range counts {
		sum, known, whole := *resource.NewQuantity(0, resource.DecimalSI), false, true
		for _, of := range resources {
			if f := stuck[of]; f != nil {
				f.names = append(f.names, name)
				whole = false
				continue
			}
			part, ok := sums[of]
			if !ok {
				continue
			}
			known = true
			if quantity, ok := part[name]; ok {
				sum.Add(quantity)
			}
		}
		if known && whole {
			used[name] = sum
		}
	}
	return used
}

// offered is the extended resource that a class names, empty if none.
func offered(class *resourceapi.DeviceClass) string {
	return ptr.Deref(class.Spec.ExtendedResourceName, "")
}

// sameQuota reports whether nothing that matters here differs between two versions.
func sameQuota(a, b *corev1.ResourceQuota) bool {
	return a.UID == b.UID && quota.Same(a.Spec.Hard, b.Spec.Hard) && quota.ScopeOf(&a.Spec).Same(quota.ScopeOf(&b.Spec)) &&
		quota.Same(a.Status.Hard, b.Status.Hard) && quota.Same(a.Status.Used, b.Status.Used)
}
