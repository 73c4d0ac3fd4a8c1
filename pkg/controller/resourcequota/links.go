package resourcequota

import (
	"slices"

	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/quota"
)

// link remembers the pod that a device claim was made for, because what the
// claim uses depends on what is counted for the pod.
func (a *account) link(object metav1.Object) {
	claim, ok := object.(*resourceapi.ResourceClaim)
	if !ok {
		return
	}
	if pod, ok := quota.ExtendedResourcePod(claim); ok {
		if a.claims[pod] == nil {
			a.claims[pod] = map[string]bool{}
		}
		a.claims[pod][claim.Name] = true
	}
}

// unlink forgets what link remembered.
func (a *account) unlink(object metav1.Object) {
	claim, ok := object.(*resourceapi.ResourceClaim)
	if !ok {
		return
	}
	if pod, ok := quota.ExtendedResourcePod(claim); ok {
		delete(a.claims[pod], claim.Name)
		if len(a.claims[pod]) == 0 {
			delete(a.claims, pod)
		}
	}
}

// madeFor returns the names of the device claims that were made for a pod.
func (a *account) madeFor(pod string) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.claims[pod]) == 0 {
		return nil
	}
	var names []string
	for name := range a.claims[pod] {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
