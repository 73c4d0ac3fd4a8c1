package podgc

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
)

// reason is why a pod is deleted, as the metrics name it.
type reason string

const (
	terminated   reason = "terminated"
	outOfService reason = "out-of-service"
	orphaned     reason = "orphaned"
	unscheduled  reason = "unscheduled"

	evicted = "Evicted"

	conditionReason  = "DeletionByPodGC"
	conditionMessage = "PodGC: node no longer exists"
)

// surplus returns the terminated pods to delete so that no more than threshold
// are left: evicted ones first, then the oldest. A threshold of zero or less
// keeps all.
func surplus(pods []*corev1.Pod, threshold int) []*corev1.Pod {
	if threshold <= 0 || len(pods) <= threshold {
		return nil
	}
	pods = slices.Clone(pods)
	slices.SortFunc(pods, func(a, b *corev1.Pod) int {
		return cmp.Or(trueFirst(a.Status.Reason == evicted, b.Status.Reason == evicted), byAge(a, b))
	})
	return pods[:len(pods)-threshold]
}

// beingDeleted returns the pods that are being deleted, oldest first.
func beingDeleted(pods []*corev1.Pod) []*corev1.Pod {
	var ending []*corev1.Pod
	for _, pod := range pods {
		if pod.DeletionTimestamp != nil {
			ending = append(ending, pod)
		}
	}
	slices.SortFunc(ending, byAge)
	return ending
}

// outOfReach tells whether the pods of a node will not end by themselves: it was
// taken out of service by hand, and it is not ready.
func outOfReach(node *corev1.Node) bool {
	tainted := slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeOutOfService
	})
	ready := slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	return tainted && !ready
}

// absent returns the nodes that pods are bound to and that do not exist, in order.
func absent(bound []string, exists func(node string) bool) []string {
	var missing []string
	for _, node := range bound {
		if node != "" && !exists(node) {
			missing = append(missing, node)
		}
	}
	slices.Sort(missing)
	return missing
}

// step is what to do to one pod.
type step struct {
	// Fail sets the phase to Failed first.
	Fail bool
	// Delete deletes the pod without a grace period.
	Delete bool
}

// stepFor leaves out what has no effect: the phase of a pod that has ended, and
// the deletion of one that only its finalizers hold.
func stepFor(pod *corev1.Pod) step {
	forced := pod.DeletionTimestamp != nil && pod.DeletionGracePeriodSeconds != nil && *pod.DeletionGracePeriodSeconds == 0
	return step{Fail: !cache.Terminated(pod), Delete: !forced}
}

// failPatch is the status patch that fails a pod, with the condition that says
// why if its node is gone.
func failPatch(pod *corev1.Pod, why reason, now time.Time) ([]byte, error) {
	type status struct {
		ObservedGeneration int64                 `json:"observedGeneration,omitempty"`
		Phase              corev1.PodPhase       `json:"phase"`
		Conditions         []corev1.PodCondition `json:"conditions,omitempty"`
	}
	patch := struct {
		Metadata struct {
			UID types.UID `json:"uid"`
		} `json:"metadata"`
		Status status `json:"status"`
	}{Status: status{ObservedGeneration: pod.Generation, Phase: corev1.PodFailed}}
	patch.Metadata.UID = pod.UID
	if why == orphaned {
		patch.Status.Conditions = []corev1.PodCondition{disruption(pod, now)}
	}
	return json.Marshal(patch)
}

func disruption(pod *corev1.Pod, now time.Time) corev1.PodCondition {
	condition := corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now),
		Reason: conditionReason, Message: conditionMessage, ObservedGeneration: pod.Generation,
	}
	for i := range pod.Status.Conditions {
		if old := &pod.Status.Conditions[i]; old.Type == condition.Type && old.Status == condition.Status {
			condition.LastTransitionTime = old.LastTransitionTime
		}
	}
	return condition
}

// plan is shown at the debug endpoint.
type plan struct {
	Terminated   int      `json:"terminated,omitempty"`
	OutOfService int      `json:"outOfService,omitempty"`
	Unscheduled  int      `json:"unscheduled,omitempty"`
	Orphaned     int      `json:"orphaned,omitempty"`
	AbsentNodes  []string `json:"absentNodes,omitempty"`
	Why          string   `json:"why"`
}

// explain sums the plan up in words.
func (p plan) explain() plan {
	var parts []string
	for _, part := range []struct {
		count int
		what  string
	}{
		{p.Terminated, "terminated pods above the threshold"},
		{p.OutOfService, "pods ending on nodes out of service"},
		{p.Unscheduled, "pods ending without a node"},
		{p.Orphaned, "pods whose node is gone"},
		{len(p.AbsentNodes), "nodes absent and in quarantine"},
	} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.what))
		}
	}
	if p.Why = strings.Join(parts, ", "); p.Why == "" {
		p.Why = "nothing to collect"
	}
	return p
}

func byAge(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
}

func trueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	}
	return 1
}
