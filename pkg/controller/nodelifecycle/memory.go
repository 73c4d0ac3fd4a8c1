package nodelifecycle

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// memory is what is remembered of a node.
type memory struct {
	heartbeat
	// object is the cached node that the facts below were read from; as it is
	// never changed, another pointer means that it may have changed.
	object   *corev1.Node
	uid      types.UID
	zone     string
	excluded bool // from disruption checks
	tainted  bool // not-ready or unreachable NoExecute
	// mistainted: such a taint is to go, or to be swapped.
	mistainted bool
	status     corev1.ConditionStatus

	// ready is the status of Ready as decided: Unknown on a silent node, also
	// while that is not written yet. Empty on a new node without the condition.
	ready  corev1.ConditionStatus
	silent bool
	// since is when the silence of the node was proven; held: the brake holds it.
	since time.Time
	held  bool
	order order
	round uint64
	// unanswered is the version of the node whose report, that it is not ready any more, got no
	// answer; empty if there is none.
	unanswered string
}

// leaseKey is where the lease of a node is in the cache of leases.
func leaseKey(node string) string { return corev1.NamespaceNodeLease + "/" + node }

// decide says whether the node is silent, and with that whether it is ready.
func (r *memory) decide(g graces, now time.Time) {
	r.silent = r.heartbeat.silent(g, now) && !r.held && !r.doubtful(g, now)
	r.ready = r.status
	if r.silent {
		r.ready = corev1.ConditionUnknown
	}
}

// doubtful reports whether only a live look can show that the node is silent. One that
// is marked already needs none.
func (r *memory) doubtful(g graces, now time.Time) bool {
	return !r.proven && r.status != corev1.ConditionUnknown && r.heartbeat.silent(g, now)
}

// looked looks again at a node that the last pass found silent: it may have been heard
// from since.
func (r memory) looked(node *corev1.Node, lease *coordinationv1.Lease, g graces, now time.Time) memory {
	switch {
	case r.uid != node.UID:
		return memory{}
	case r.silent:
		r.see(node, lease, now)
		r.status = readyStatus(node)
		r.decide(g, now)
	}
	return r
}
