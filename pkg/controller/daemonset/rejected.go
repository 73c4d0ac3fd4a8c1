package daemonset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
)

// longestHold is how long a node is not looked at again whose rejected pod is held:
// with fewer nodes in trouble its turn comes sooner.
const longestHold = 5 * time.Minute

// retry says whether a node that rejected its pod gets another one now. It is worked out
// before the node is considered; the zero value replaces rejected pods like all that failed.
type retry struct {
	// troubled: the node rejects pods, as far as is known.
	troubled bool
	// last is the latest pod that the node rejected, nil if none is there, and due when
	// the one after it may be made.
	last *corev1.Pod
	due  time.Time
	// since is when the node began to.
	since time.Time
}

// retryOf finds what the node of these pods has rejected.
func retryOf(all []*corev1.Pod, selector labels.Selector) retry {
	var r retry
	for _, pod := range all {
		if !selector.Matches(labels.Set(pod.Labels)) || over(pod) {
			continue
		}
		r.troubled = r.troubled || pod.DeletionTimestamp == nil && rejections.Troubled(pod)
		if rejections.Rejected(pod) && (r.last == nil || first(r.last, pod) < 0) {
			r.last = pod
		}
	}
	return r
}

// among works out when the node is tried again, as one of so many that reject pods.
func (r *retry) among(nodes int) {
	if r.last == nil {
		return
	}
	r.due = rejections.Due(r.last, nodes, nodes)
	var again bool
	if r.since, again = rejections.SinceOf(r.last); !again {
		r.since = r.last.CreationTimestamp.Time
	}
}

// backOff works out for all nodes that were observed when they are tried again.
func (o *observed) backOff() {
	var all []*view
	for i := range o.views {
		all = append(all, &o.views[i])
	}
	for _, c := range slices.Concat(o.waiting, o.leaving) {
		all = append(all, c.view)
	}
	troubled := o.others.sums.troubled
	for _, n := range all {
		if n.retry = retryOf(n.pods, o.selector); n.retry.troubled {
			troubled++
		}
	}
	for _, n := range all {
		n.retry.among(troubled)
	}
}

// setAside separates the pods that the node rejected. The last one stays until the
// pod that replaces it exists, since that one takes over its record; it is returned
// while it has no replacement. Those before it are removed.
func (v *needs) setAside(q *question, n *view, here []*corev1.Pod) (left []*corev1.Pod, last *corev1.Pod) {
	if last = n.retry.last; last == nil {
		return here, nil
	}
	replaced := slices.ContainsFunc(here, func(pod *corev1.Pod) bool {
		_, again := rejections.SinceOf(pod)
		return pod.DeletionTimestamp == nil && !rejections.Rejected(pod) &&
			(q.isNew(pod) || again && !pod.CreationTimestamp.Before(&last.CreationTimestamp))
	})
	for _, pod := range here {
		if rejections.Rejected(pod) && (replaced || pod != last) {
			v.remove = append(v.remove, removal{pod, n.name, failed})
		} else {
			left = append(left, pod)
		}
	}
	if replaced {
		return left, nil
	}
	return left, last
}

// follow creates the replacement of a rejected pod when it is due, and when the
// other pods of the node leave room for it.
func (v *needs) follow(q *question, n *view, here []*corev1.Pod) {
	others, staying := 0, 0
	for _, pod := range here {
		if !pods.Terminal(pod) {
			others++
		}
		if pods.Active(pod) {
			staying++
		}
	}
	switch r := n.retry; {
	case v.fit != fitOpen || staying > 0 && !q.surges:
		v.remove = append(v.remove, removal{r.last, n.name, failed})
	case others > 1 || others > 0 && !q.surges:
	case q.now.Before(r.due) && (q.rolls || q.isNew(r.last)):
		v.due, v.why = r.due, r.last.Status.Reason
		v.lookAfter(q, min(r.due.Sub(q.now), longestHold))
	case q.isNew(r.last):
		v.create, v.since = true, r.since
	default: // another template has no record yet
		v.create = true
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

// sooner returns what the set has to say with one more node that is held.
func (s setback) sooner(node string, of *nodeState) setback {
	if !of.due.IsZero() && (s.node == "" || of.due.Before(s.due) || of.due.Equal(s.due) && node < s.node) {
		s.node, s.reason, s.due = node, of.why, of.due
	}
	return s
}

// condition adds the condition of a set when a pod is held, says its next time,
// and removes it when no node is in trouble any more.
func (s setback) condition(conditions []appsv1.DaemonSetCondition, now time.Time) []appsv1.DaemonSetCondition {
	var condition *appsv1.DaemonSetCondition
	if s.node != "" {
		condition = &appsv1.DaemonSetCondition{
			Type: rejections.Condition, Status: corev1.ConditionTrue, Reason: rejections.Reason, LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)),
			Message: rejections.Message(s.troubled, "node "+s.node, s.reason, s.due),
		}
	}
	return rejections.Update(conditions, condition, s.troubled == 0, factsOf)
}

// factsOf returns the type of a condition and when it began.
func factsOf(c *appsv1.DaemonSetCondition) (string, *metav1.Time) {
	return string(c.Type), &c.LastTransitionTime
}

// backoffOf is what a status says of rejected pods; nil if it says nothing.
func backoffOf(status *appsv1.DaemonSetStatus) *appsv1.DaemonSetCondition {
	return rejections.Find(status.Conditions, factsOf)
}
