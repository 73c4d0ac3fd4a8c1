package resourcequota

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kube-kcm/kube-controller-manager/pkg/quota"
)

const (
	// inFlight is how long a charge of the API server may be ahead of its object:
	// until then a usage that is below the charge is no reason to take it back.
	inFlight = 150 * time.Millisecond
	// longestWait bounds how long charges that follow each other hold that up.
	longestWait = 400 * time.Millisecond
)

// plan says what to write.
type plan struct {
	// Status is what to write, nil if nothing.
	Status *corev1.ResourceQuotaStatus `json:"status,omitempty"`
	// Frozen are the names that are not counted now.
	Frozen []frozen `json:"frozen,omitempty"`
	// Why is the reason in words.
	Why string `json:"why"`

	wait time.Duration
	// settled: what was charged and what was counted are the same.
	settled bool
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

// moment is what time has to do with a decision.
type moment struct {
	now time.Time
	// charged is when somebody else last raised the usage; lowering is since when
	// it is to be lowered, zero if it is not.
	charged, lowering time.Time
}

// decide compares the status with the limits of the spec and what was counted.
// Names that were not counted stay as they are.
func decide(q *corev1.ResourceQuota, counted corev1.ResourceList, m moment) plan {
	used := corev1.ResourceList{}
	raised, lowered := false, false
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
			lowered = true
		}
		used[name] = is.DeepCopy()
	}
	limits := !quota.Same(q.Spec.Hard, q.Status.Hard)
	stale := len(used) != len(q.Status.Used)
	p := plan{Status: &corev1.ResourceQuotaStatus{Hard: q.Spec.Hard.DeepCopy(), Used: used}}
	switch {
	case limits:
		p.Why = "the limits changed"
	case raised:
		p.Why = "more is used"
	case stale:
		p.Why = "the names changed"
	case !lowered:
		return plan{Why: "nothing differs", settled: true}
	default:
		if wait := untilSure(m); wait > 0 {
			return plan{Why: "less is used, but a charge may be ahead of its object", wait: wait}
		}
		p.Why = "less is used"
	}
	return p
}

// untilSure is how long to wait before a usage is lowered that somebody has
// just raised.
func untilSure(m moment) time.Duration {
	if m.charged.IsZero() {
		return 0
	}
	wait := m.charged.Add(inFlight).Sub(m.now)
	if !m.lowering.IsZero() {
		wait = min(wait, m.lowering.Add(longestWait).Sub(m.now))
	}
	return max(wait, 0)
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

// charged tells whether the usage was raised.
func charged(old, now *corev1.ResourceQuota) bool {
	for name, is := range now.Status.Used {
		if was, ok := old.Status.Used[name]; ok && is.Cmp(was) > 0 {
			return true
		}
	}
	return false
}
