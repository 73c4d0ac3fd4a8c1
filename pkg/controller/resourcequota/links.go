package resourcequota

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/pkg/quota"
)

// madeFor returns the pod that an object says it was made for; only device
// claims do.
func madeFor(object metav1.Object) (*resourceapi.ResourceClaim, string) {
	claim, ok := object.(*resourceapi.ResourceClaim)
	if !ok {
		return nil, ""
	}
	pod, _ := quota.ExtendedResourcePod(claim)
	return claim, pod
}

// link remembers the pod that a device claim was made for, because what the
// claim uses depends on what is counted for the pod.
func (a *account) link(object metav1.Object) {
	claim, pod := madeFor(object)
	if pod == "" {
		return
	}
	if a.claims[pod] == nil {
		a.claims[pod] = map[string]*resourceapi.ResourceClaim{}
	}
	a.claims[pod][claim.Name] = claim
}

// unlink forgets what link remembered.
func (a *account) unlink(object metav1.Object) {
	claim, pod := madeFor(object)
	if pod == "" {
		return
	}
	delete(a.claims[pod], claim.Name)
	if len(a.claims[pod]) == 0 {
		delete(a.claims, pod)
	}
}

// claimsFor returns the device claims that say that they were made for a pod. It
// is for measures, which are taken while the account is locked.
func (a *account) claimsFor(pod *corev1.Pod) []*resourceapi.ResourceClaim {
	var claims []*resourceapi.ResourceClaim
	for _, claim := range a.claims[pod.Name] {
		if metav1.IsControlledBy(claim, pod) {
			claims = append(claims, claim)
		}
	}
	return claims
}

// podsOf returns the names of the pods whose claims a change concerns: a claim may have been
// the first of its pod's, or be that now.
func podsOf(of schema.GroupResource, old, now metav1.Object) []string {
	var pods []string
	for _, object := range []metav1.Object{old, now} {
		if object == nil {
			continue
		}
		name := object.GetName()
		if of != quota.Pods {
			_, name = madeFor(object)
		}
		if name != "" && !slices.Contains(pods, name) {
			pods = append(pods, name)
		}
	}
	return pods
}
