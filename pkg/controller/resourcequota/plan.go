package resourcequota

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/pkg/quota"
)

// plan says what to write.
type plan struct {
	// Status is what to write, nil if nothing.
	Status *corev1.ResourceQuotaStatus `json:"status,omitempty"`
	// Ahead is what was charged for objects that are not seen yet.
	Ahead corev1.ResourceList `json:"ahead,omitempty"`
	// Frozen are the names that are not counted now.
	Frozen []frozen `json:"frozen,omitempty"`
	// Why is the reason in words.
	Why string `json:"why"`
}

// frozen is a resource that cannot be read, and the names that count it.
type frozen struct {
	Resource string                `json:"resource"`
	Names    []corev1.ResourceName `json:"names"`
	Error    string                `json:"error,omitempty"`
	Since    time.Time             `json:"since,omitzero"`

	of     schema.GroupResource
	broken bool
}

// decide compares the status with the limits of the spec and what was counted.
// Names that were not counted stay as they are. What was charged ahead of its
// objects is not taken back; what the objects use in any case is used.
func decide(q *corev1.ResourceQuota, counted, ahead corev1.ResourceList) plan {
	used := corev1.ResourceList{}
	raised, lowered, held := false, false, corev1.ResourceList{}
	for name := range q.Spec.Hard {
		was, had := q.Status.Used[name]
		is, have := counted[name]
		switch {
		case !have && !had:
			continue
		case !have:
			is = was
		case !had || is.Cmp(was) > 0:
			raised = true
		case is.Cmp(was) < 0:
			least := is.DeepCopy()
			is.Add(ahead[name])
			if is.Cmp(was) > 0 {
				is = was
			}
			lowered = lowered || is.Cmp(was) < 0
			if under := less(is, least); under.Sign() > 0 {
				held[name] = under
			}
		}
		used[name] = is.DeepCopy()
	}
	limits := !quota.Same(q.Spec.Hard, q.Status.Hard)
	p := plan{Status: &corev1.ResourceQuotaStatus{Hard: q.Spec.Hard.DeepCopy(), Used: used}, Ahead: held}
	switch {
	case limits:
		p.Why = "the limits changed"
	case raised:
		p.Why = "more is used"
	case len(used) != len(q.Status.Used):
		p.Why = "the names changed"
	case lowered:
		p.Why = "less is used"
	case len(held) > 0:
		p.Status, p.Why = nil, "less is used, but charges may be ahead of their objects"
	default:
		p.Status, p.Why = nil, "nothing differs"
	}
	return p
}

// urgent tells whether a quota stands in the way of its users: its limits are
// not in force yet, or one of them has no usage that this controller could give.
func urgent(q *corev1.ResourceQuota, countable func(corev1.ResourceName) bool) bool {
	if !quota.Same(q.Spec.Hard, q.Status.Hard) {
		return true
	}
	for name := range q.Status.Hard {
		if _, used := q.Status.Used[name]; !used && countable(name) {
			return true
		}
	}
	return false
}
