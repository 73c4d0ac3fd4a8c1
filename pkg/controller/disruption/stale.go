package disruption

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podrules "github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// staleTimeout is how long a pod may be called the target of a disruption
// without being deleted.
const staleTimeout = 2 * time.Minute

// observedPod is what a plan for a single pod is made from.
type observedPod struct {
	pod *corev1.Pod
	// overlap: it is about the budgets that select the pod, else about its condition.
	overlap bool
	budgets []*policyv1.PodDisruptionBudget
}

// planPod resets the condition DisruptionTarget when it is out of date, or sends an
// event that several budgets select the pod.
func planPod(o observedPod, now time.Time) act.Plan {
	if o.overlap {
		return o.announce()
	}
	wait, targeted := staleIn(o.pod, now)
	switch {
	case !targeted:
		return act.Plan{Why: "there is no condition DisruptionTarget to reset"}
	case wait > 0:
		return act.Plan{Why: fmt.Sprintf("its DisruptionTarget is out of date in %s", wait.Round(time.Millisecond)), RequeueAfter: wait}
	}
	why := fmt.Sprintf("its DisruptionTarget is out of date, after more than %s", staleTimeout)
	return act.Plan{Why: why, Stages: act.Stages(resetPatch(o.pod, now))}
}

// announce sends an event that several budgets select the pod. The API server evicts no
// such pod, and names one budget like any other.
func (o observedPod) announce() act.Plan {
	p := act.Plan{Why: fmt.Sprintf("%d budgets select it", len(o.budgets))}
	if len(o.budgets) > 1 {
		first := slices.MinFunc(o.budgets, func(a, b *policyv1.PodDisruptionBudget) int { return cmp.Compare(a.Name, b.Name) })
		p.Stages = act.Stages(act.Event{On: o.pod, Type: corev1.EventTypeWarning, Reason: reasonMultipleBudgets,
			Message: fmt.Sprintf(multipleFormat, o.pod.Namespace, o.pod.Name, first.Name)})
	}
	return p
}

// staleIn reports whether the condition DisruptionTarget of the pod is to be taken
// back, and in how long. A kubelet takes its time to end a pod, and of a pod that
// has ended the condition says why.
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
func resetPatch(pod *corev1.Pod, now time.Time) act.Patch {
	patch := podrules.StatusPatch{SameVersion: true, Conditions: []corev1.PodCondition{{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionFalse,
		ObservedGeneration: pod.Generation, LastTransitionTime: metav1.NewTime(now),
	}}}.Of(pod)
	patch.Versioned = true
	return patch
}
