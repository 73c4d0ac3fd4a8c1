package daemonset

import (
	"container/heap"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/rejections"
)

// longestHold is how long a node is not judged again whose rejected pod is held:
// with fewer nodes in trouble its turn comes sooner.
const longestHold = 5 * time.Minute

// patience is what the nodes are judged by that reject their pods.
type patience struct {
	// troubled is how many nodes do, as far as they have been judged.
	troubled func() int
	// listed is how many of the pods say so, when all are looked at.
	listed int
}

func (p *patience) nodes() int { return max(p.listed, p.troubled()+1) }

// troubledOf counts the pods whose nodes reject them.
func troubledOf(all []*corev1.Pod) (n int) {
	for _, pod := range all {
		if pod.DeletionTimestamp == nil && rejections.Troubled(pod) {
			n++
		}
	}
	return n
}

// setAside sorts out pods that the node rejected. The last one stays until the
// pod that replaces it is there, which carries its record on; it is returned if it
// has none yet. Those before it go.
func (v *verdict) setAside(q *question, node string, here []*corev1.Pod) (left []*corev1.Pod, last *corev1.Pod) {
	if q.patience == nil {
		return here, nil
	}
	for _, pod := range here {
		v.troubled = v.troubled || pod.DeletionTimestamp == nil && rejections.Troubled(pod)
		if rejections.Rejected(pod) && (last == nil || !pod.CreationTimestamp.Before(&last.CreationTimestamp)) {
			last = pod
		}
	}
	if last == nil {
		return here, nil
	}
	replaced := slices.ContainsFunc(here, func(pod *corev1.Pod) bool {
		_, again := rejections.SinceOf(pod)
		return pod.DeletionTimestamp == nil && !rejections.Rejected(pod) &&
			(q.isNew(pod) || again && !pod.CreationTimestamp.Before(&last.CreationTimestamp))
	})
	for _, pod := range here {
		if rejections.Rejected(pod) && (replaced || pod != last) {
			v.remove = append(v.remove, removal{pod, node, failed})
		} else {
			left = append(left, pod)
		}
	}
	if replaced {
		return left, nil
	}
	return left, last
}

// follow has the pod made that follows a rejected one, when it is due and others
// leave room for it.
func (v *verdict) follow(q *question, node string, rejected *corev1.Pod, here []*corev1.Pod) {
	others, staying := 0, 0
	for _, pod := range here {
		if !pods.Terminal(pod) {
			others++
		}
		if pods.Active(pod) {
			staying++
		}
	}
	switch {
	case !v.runs || staying > 0 && !q.surges:
		v.remove = append(v.remove, removal{rejected, node, failed})
		return
	case others > 1 || others > 0 && !q.surges:
		return
	}
	nodes := q.patience.nodes()
	if due := rejections.Due(rejected, nodes, nodes); q.now.Before(due) {
		v.due, v.why = due, rejected.Status.Reason
		v.lookAfter(q, min(due.Sub(q.now), longestHold))
		return
	}
	v.create = true
	if since, again := rejections.SinceOf(rejected); again {
		v.since = since
	} else {
		v.since = rejected.CreationTimestamp.Time
	}
}

// setback is what a set has to say of nodes that reject its pods.
type setback struct {
	// troubled is how many do.
	troubled int
	// node is the one that is tried next, and reason why it rejected its pod; empty
	// while no pod is held.
	node, reason string
	due          time.Time
}

// setback returns what is noted of nodes that reject pods.
func (b *book) setback() setback {
	b.mu.Lock()
	defer b.mu.Unlock()
	for len(b.dues) > 0 && !b.nodes[b.dues[0].node].due.Equal(b.dues[0].at) {
		heap.Pop(&b.dues)
	}
	s := setback{troubled: b.sums.troubled}
	if len(b.dues) > 0 {
		s.node, s.due = b.dues[0].node, b.dues[0].at
		s.reason = b.nodes[s.node].why
	}
	return s
}

// condition adds the condition of a set when a pod is held, says its next time,
// and removes it when no node is in trouble any more.
func (s setback) condition(conditions []appsv1.DaemonSetCondition, now time.Time) []appsv1.DaemonSetCondition {
	var told *appsv1.DaemonSetCondition
	if s.node != "" {
		told = &appsv1.DaemonSetCondition{
			Type: rejections.Condition, Status: corev1.ConditionTrue, Reason: rejections.Reason, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
			Message: rejections.Message(s.troubled, "node "+s.node, s.reason, s.due),
		}
	}
	return rejections.Tell(conditions, told, s.troubled == 0, func(c *appsv1.DaemonSetCondition) (string, *metav1.Time) {
		return string(c.Type), &c.LastTransitionTime
	})
}

// tells tells whether a status says that pods are rejected.
func tells(status *appsv1.DaemonSetStatus) bool {
	return slices.ContainsFunc(status.Conditions, func(c appsv1.DaemonSetCondition) bool { return c.Type == rejections.Condition })
}
