package statefulset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
)

// setback is what pods that their nodes rejected mean for a set. A rejected pod
// stays until its place is due for the next one, and goes only after the set's
// condition has said since when pods are rejected. The next one gets that from
// there, so that it is not lost between the two, whatever happens to the process.
type setback struct {
	// since is when the first pod was rejected by the condition; zero without one.
	since time.Time
	// due is when the rejected pods go, by name.
	due map[string]time.Time
	// next is the one that goes first; nil if none is there.
	next *corev1.Pod
	// over says that no pod is waited for any more.
	over bool
}

// setback looks at the pods in their places; nil when all are replaced at once.
func (o observed) setback(places []place) *setback {
	if !o.backsOff {
		return nil
	}
	b := &setback{since: rejectedSince(o.set), due: map[string]time.Time{}}
	var rejected []int
	troubled, missing, tried, accepted := 0, 0, 0, false
	for i := range places {
		pod := places[i].pod
		if pod == nil {
			missing++
			continue
		}
		since, again := rejections.SinceOf(pod)
		switch {
		case !rejections.Troubled(pod):
			accepted = accepted || again && since.Equal(b.since) && pods.Active(pod)
			continue
		case rejections.Rejected(pod) && !terminating(pod):
			rejected = append(rejected, i)
		}
		if troubled++; again {
			tried++
		}
	}
	if !b.since.IsZero() {
		tried += missing
	}
	for _, i := range rejected {
		pod := places[i].pod
		if _, again := rejections.SinceOf(pod); !again {
			tried++
		}
		due := rejections.Due(pod, tried, troubled)
		if revisionOf(pod) != o.wantedRevision(i).name {
			due = pod.CreationTimestamp.Time // what is made next is another pod
		}
		b.due[pod.Name] = due
		if b.next == nil || due.Before(b.due[b.next.Name]) {
			b.next = pod
		}
	}
	b.over = troubled == 0 && (missing == 0 || accepted)
	return b
}

// holds returns why a pod that has ended stays still; empty if it does not.
func (b *setback) holds(pod *corev1.Pod, now time.Time) string {
	if b == nil {
		return ""
	}
	due, rejected := b.due[pod.Name]
	switch {
	case !rejected:
		return ""
	case b.since.IsZero():
		return pod.Name + " was rejected by its node; writing the condition before it is replaced"
	case now.Before(due):
		return pod.Name + " was rejected by its node, and is replaced at " + due.UTC().Format(time.RFC3339)
	}
	return ""
}

// mark gives a new pod the record of those that were rejected.
func (b *setback) mark(pod *corev1.Pod) {
	if b != nil && !b.over && !b.since.IsZero() {
		rejections.MarkSince(pod, b.since)
	}
}

// wait is how long until the next rejected pod goes; zero if time alone does nothing.
func (b *setback) wait(now time.Time) time.Duration {
	if b == nil || b.next == nil || b.since.IsZero() {
		return 0
	}
	return max(b.due[b.next.Name].Sub(now), 0)
}

// condition adds the condition about rejected pods or updates its next time, and removes
// it when there is nothing more to hold back.
func (b *setback) condition(conditions []appsv1.StatefulSetCondition, now time.Time) []appsv1.StatefulSetCondition {
	var condition *appsv1.StatefulSetCondition
	if b != nil && b.next != nil {
		condition = &appsv1.StatefulSetCondition{
			Type: rejections.Condition, Status: corev1.ConditionTrue, Reason: rejections.Reason, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
			Message: rejections.Message(len(b.due), b.next.Name, b.next.Status.Reason, b.due[b.next.Name]),
		}
	}
	return rejections.Update(conditions, condition, b == nil || b.over, factsOf)
}

// factsOf returns the type of a condition and when it began.
func factsOf(c *appsv1.StatefulSetCondition) (string, *metav1.Time) {
	return string(c.Type), &c.LastTransitionTime
}

// rejectedSince is when the set's condition began; zero if it has none.
func rejectedSince(set *appsv1.StatefulSet) time.Time {
	if c := backoffOf(&set.Status); c != nil {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

// backoffOf is what a status says of rejected pods; nil if it says nothing.
func backoffOf(status *appsv1.StatefulSetStatus) *appsv1.StatefulSetCondition {
	return rejections.Find(status.Conditions, factsOf)
}
