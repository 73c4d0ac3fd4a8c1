package podgc

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/nodes"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// reason is why a pod is deleted, as the metrics name it.
type reason string

const (
	terminated   reason = "terminated"
	outOfService reason = "out-of-service"
	orphaned     reason = "orphaned"
	unscheduled  reason = "unscheduled"

	evicted = "Evicted"

	// atOnce bounds the deletions that are under way at one time.
	atOnce = 50

	conditionReason  = "DeletionByPodGC"
	conditionMessage = "PodGC: node no longer exists"
)

// surplus returns the terminated pods to delete so that no more than threshold
// are left: evicted ones first, then the oldest. A threshold of zero or less
// keeps all.
func surplus(ended []*corev1.Pod, threshold int) []*corev1.Pod {
	if threshold <= 0 || len(ended) <= threshold {
		return nil
	}
	ended = slices.Clone(ended)
	slices.SortFunc(ended, func(a, b *corev1.Pod) int {
		return cmp.Or(pods.FalseFirst(a.Status.Reason != evicted, b.Status.Reason != evicted), byAge(a, b))
	})
	return ended[:len(ended)-threshold]
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

// outOfReach reports whether the pods of a node will not end by themselves: it was
// taken out of service by hand, and it is not ready.
func outOfReach(node *corev1.Node) bool {
	return nodes.OutOfService(node) && !nodes.Ready(node)
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
	return step{Fail: !pods.Terminal(pod), Delete: !pods.Forced(pod)}
}

// failPatch is the status patch that fails a pod, with the condition that says
// why if its node is gone.
func failPatch(pod *corev1.Pod, why reason, now time.Time) act.Patch {
	set := pods.StatusPatch{ObservedGeneration: pod.Generation, Phase: corev1.PodFailed}
	if why == orphaned {
		set.Conditions = []corev1.PodCondition{disruption(pod, now)}
	}
	patch := set.Of(pod)
	patch.UntilGone = true
	return patch
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

// collection is pods that are deleted for one reason.
type collection struct {
	why  reason
	pods []*corev1.Pod
}

// words are how a person reads the reasons.
var words = map[reason]string{
	terminated:   "terminated pods above the threshold",
	outOfService: "pods ending on nodes out of service",
	unscheduled:  "pods ending without a node",
	orphaned:     "pods whose node is gone",
}

func (c collection) String() string { return fmt.Sprintf("%d %s", len(c.pods), words[c.why]) }

// collections returns what there is to collect.
func (o observed) collections() []collection {
	var stranded []*corev1.Pod
	for _, h := range o.outOfService {
		if outOfReach(h.node) {
			stranded = append(stranded, beingDeleted(h.pods)...)
		}
	}
	all := []collection{
		{terminated, surplus(o.terminated, o.threshold)},
		{outOfService, stranded},
		{unscheduled, beingDeleted(o.unscheduled)},
		{orphaned, o.orphaned},
	}
	return slices.DeleteFunc(all, func(c collection) bool { return len(c.pods) == 0 })
}

// plan deletes what is to be collected, one collection after another, and notes the
// nodes that are absent.
func plan(o observed, now time.Time) act.Plan {
	all := o.collections()
	end := act.Plan{Err: o.err}
	if o.key == pass {
		end.RequeueAfter = period
	}
	if len(all) == 0 {
		end.Why, end.Note = why(all, o.absent), o.note
		return end
	}
	return act.Plan{Why: why(all, o.absent), Note: o.note, Then: func(act.Results) act.Plan { return collect(all, end, now) }}
}

func (o observed) note(act.Results) any { return o.absent }

// why sums up in words.
func why(all []collection, absent []string) string {
	var parts []string
	for _, c := range all {
		parts = append(parts, c.String())
	}
	if len(absent) > 0 {
		parts = append(parts, fmt.Sprintf("%d nodes absent and in quarantine", len(absent)))
	}
	return cmp.Or(strings.Join(parts, ", "), "nothing to collect")
}

// collect plans the first of the collections, and the others whatever becomes of it.
func collect(all []collection, end act.Plan, now time.Time) act.Plan {
	c, p := all[0], act.Plan{}
	if len(all) == 1 {
		p = end
	} else {
		p.Then = func(act.Results) act.Plan { return collect(all[1:], end, now) }
		p.Else = p.Then
	}
	var steps []act.Step
	var tried []*corev1.Pod
	for _, pod := range c.pods {
		if do := stepFor(pod); do != (step{}) {
			steps, tried = append(steps, do.of(pod, c.why, now)), append(tried, pod)
		}
	}
	p.Why, p.Stages = c.String(), []act.Stage{act.Abreast(atOnce, steps...)}
	p.Counts = func(r act.Results) []act.Count { return counts(tried, c.why, r) }
	return p
}

// of fails the pod if it has not ended, and deletes it without a grace period. A pod
// that turns out to be gone is not deleted.
func (s step) of(pod *corev1.Pod, why reason, now time.Time) act.Step {
	deletion := act.Delete{Of: pod, Grace: new(int64), UntilGone: true, MayRepeat: true}
	if !s.Fail {
		return deletion
	}
	part := act.Part{
		Of:     pod,
		Stages: act.Stages(failPatch(pod, why, now)),
		Last: func(r act.Results) act.Step {
			if !s.Delete || len(act.Succeeded[act.Patch](r)) == 0 {
				return nil
			}
			return deletion
		},
	}
	if s.Delete {
		part.Deletes = pod // a pod that fails is lost: not before its deletion has its turn
	}
	return part
}

// counts are the tries, also those that failed, and the failures. What was held back was
// not tried.
func counts(tried []*corev1.Pod, why reason, results act.Results) []act.Count {
	held := results.Held()
	var all []act.Count
	for _, pod := range tried {
		if !held[pod.UID] {
			all = append(all, act.Count{Adds: tries.WithLabelValues(pod.Namespace, string(why)), Value: 1})
		}
	}
	for _, r := range results {
		if r.Err != nil && r.Became != act.OnHold {
			all = append(all, act.Count{Adds: deleteErrors.WithLabelValues(r.Step.About().GetNamespace(), string(why)), Value: 1})
		}
	}
	return all
}

func byAge(a, b *corev1.Pod) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
}
