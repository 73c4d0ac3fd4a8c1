package disruption

import (
	"fmt"
	"math"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// owner is what decides how many pods there should be, such as a Deployment.
type owner struct {
	uid      types.UID
	replicas int32
}

// expectation is how many pods there should be.
type expectation struct {
	count int32
	// unmanaged are the pods that nothing controls, so that nothing says how many
	// of them there should be.
	unmanaged []string
}

// byScale reports whether the budget is about a share of the pods that there
// should be; if not, it is about a number.
func byScale(spec *policyv1.PodDisruptionBudgetSpec) bool {
	return spec.MaxUnavailable != nil || spec.MinAvailable != nil && spec.MinAvailable.Type == intstr.String
}

// expect adds up what the owners of the pods ask for, each owner once. ownerOf
// answers nil when what the pod names as its controller is not there.
func expect(pods []*corev1.Pod, ownerOf func(ref *metav1.OwnerReference) (*owner, error)) (expectation, error) {
	var e expectation
	asked, counted := map[types.UID]bool{}, map[types.UID]bool{}
	for _, pod := range pods {
		ref := metav1.GetControllerOfNoCopy(pod)
		if ref == nil {
			e.unmanaged = append(e.unmanaged, pod.Name)
			continue
		}
		if asked[ref.UID] {
			continue
		}
		found, err := ownerOf(ref)
		if err != nil {
			return expectation{}, err
		}
		if found == nil {
			return expectation{}, fmt.Errorf("found no controllers for pod %q", pod.Name)
		}
		asked[ref.UID] = true
		if !counted[found.uid] {
			counted[found.uid] = true
			e.count = int32(min(int64(e.count)+int64(found.replicas), math.MaxInt32))
		}
	}
	return e, nil
}

// required is how many pods the budget expects and how many of them are to be
// healthy. A share is rounded up: in favour of the pods where it says how many
// must stay, and of the disruption where it says how many may go.
func required(spec *policyv1.PodDisruptionBudgetSpec, pods int, e expectation) (expected, healthy int32, err error) {
	switch {
	case spec.MaxUnavailable != nil:
		unavailable, err := intstr.GetScaledValueFromIntOrPercent(spec.MaxUnavailable, int(e.count), true)
		if err != nil {
			return 0, 0, err
		}
		return e.count, max(0, e.count-int32(unavailable)), nil
	case spec.MinAvailable == nil:
		return 0, 0, nil
	case spec.MinAvailable.Type == intstr.Int:
		return int32(pods), spec.MinAvailable.IntVal, nil
	}
	available, err := intstr.GetScaledValueFromIntOrPercent(spec.MinAvailable, int(e.count), true)
	if err != nil {
		return 0, 0, err
	}
	return e.count, int32(available), nil
}
