package resourcequota

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/quota"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// plan writes the status if it differs, and says which numbers are frozen and why.
func plan(o observed, now time.Time) act.Plan {
	if o.loading {
		return act.Plan{Why: "waiting for first lists" + inWords(o.frozen), Prompt: true, RequeueAfter: soon}
	}
	d := decide(o.quota, o.used, o.ahead)
	broken, more := lasting(o.frozen, now)
	p := act.Plan{
		Why: d.why + quantities(d.used) + inWords(o.frozen), Prompt: true,
		Note: func(r act.Results) any { return o.outcome(broken, r) },
	}
	p.RequeueAfter = act.Soonest(more, o.next)
	if !o.until.IsZero() {
		p.RequeueAfter = act.Soonest(p.RequeueAfter, max(o.until.Sub(now), time.Millisecond))
	}
	for _, e := range o.events(broken) {
		p.Stages = append(p.Stages, act.InTurn(e))
	}
	if d.writes {
		p.Status = func(act.Results) act.Step {
			return act.Status{
				Of: o.quota, Set: func(to client.Object) {
					to.(*corev1.ResourceQuota).Status = corev1.ResourceQuotaStatus{Hard: o.quota.Spec.Hard.DeepCopy(), Used: d.used}
				},
				// After a conflict the API server has charged the quota meanwhile; its event brings
				// the newer one. While that does not come, it is looked at ever later.
				OnConflict: soon << min(o.conflicts, 5),
			}
		}
	}
	return p
}

// outcome is what is to be remembered of the results.
func (o observed) outcome(broken map[schema.GroupResource]bool, results act.Results) outcome {
	_, err := results.Failed()
	out := outcome{began: o.began, broken: broken, failed: err != nil}
	for _, r := range results {
		switch wrote, is := r.Object.(*corev1.ResourceQuota); {
		case is:
			out.wrote = wrote
		case r.Became == act.Overtaken:
			out.overtaken = o.quota.ResourceVersion
		}
	}
	return out
}

// decision is what the usage is, and whether it is to be written.
type decision struct {
	writes bool
	used   corev1.ResourceList
	// ahead is what was charged for objects that are not seen yet.
	ahead corev1.ResourceList
	why   string
}

// decide compares the status with the limits of the spec and what was counted.
// Names that were not counted stay as they are. What was charged ahead of its
// objects is not taken back; what the objects use in any case is used.
func decide(q *corev1.ResourceQuota, counted, ahead corev1.ResourceList) decision {
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
	d := decision{writes: true, used: used, ahead: held}
	switch {
	case !quota.Same(q.Spec.Hard, q.Status.Hard):
		d.why = "the limits changed"
	case raised:
		d.why = "more is used"
	case len(used) != len(q.Status.Used):
		d.why = "the names changed"
	case lowered:
		d.why = "less is used"
	case len(held) > 0:
		d.writes, d.why = false, "less is used, but some charges may be for objects that are not seen yet"
	default:
		d.writes, d.why = false, "nothing differs"
	}
	return d
}

// urgent reports whether a quota stands in the way of its users: its limits are
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
