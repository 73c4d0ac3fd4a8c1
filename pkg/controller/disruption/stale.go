package disruption

import (
	"encoding/json"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	podrules "github.com/kube-kcm/kube-controller-manager/pkg/pods"
)

// staleTimeout is how long a pod may be called the target of a disruption
// without being deleted.
const staleTimeout = 2 * time.Minute

// staleIn reports whether the condition DisruptionTarget of the pod is to be taken
// back, and in how long. A kubelet takes its time to end a pod, and of a pod that
// has ended the condition tells why.
func staleIn(pod *corev1.Pod, now time.Time) (time.Duration, bool) {
	c := podrules.Condition(pod, corev1.DisruptionTarget)
	if c == nil || c.Status != corev1.ConditionTrue || c.Reason == corev1.PodReasonTerminationByKubelet ||
		pod.DeletionTimestamp != nil || podrules.Terminal(pod) {
		return 0, false
	}
	return max(0, c.LastTransitionTime.Add(staleTimeout).Sub(now)), true
}

// resetPatch is the strategic merge patch for the status of the pod that takes
// the condition back. The server refuses it if the pod has changed since.
func resetPatch(pod *corev1.Pod, now time.Time) ([]byte, error) {
	type meta struct {
		UID             types.UID `json:"uid"`
		ResourceVersion string    `json:"resourceVersion,omitempty"`
	}
	// The words of the old condition go, so they are named.
	type condition struct {
		Type               corev1.PodConditionType `json:"type"`
		Status             corev1.ConditionStatus  `json:"status"`
		ObservedGeneration int64                   `json:"observedGeneration,omitempty"`
		LastProbeTime      *metav1.Time            `json:"lastProbeTime"`
		LastTransitionTime metav1.Time             `json:"lastTransitionTime"`
		Reason             *string                 `json:"reason"`
		Message            *string                 `json:"message"`
	}
	type status struct {
		Conditions []condition `json:"conditions"`
	}
	return json.Marshal(struct {
		Metadata meta   `json:"metadata"`
		Status   status `json:"status"`
	}{
		meta{pod.UID, pod.ResourceVersion},
		status{[]condition{{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionFalse,
			ObservedGeneration: pod.Generation, LastTransitionTime: metav1.NewTime(now),
		}}},
	})
}
