package daemonset

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/revisions"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// burst is how many pods one reconcile creates at most, and how many it deletes.
const burst = 250

// draft is what is to be done about the nodes, and what is known of them then.
type draft struct {
	*observed
	elsewhere // becomes that of all nodes
	now       time.Time
	q         question

	fresh   []outcome // of the nodes that were to be considered
	entries []entry
	rolled  bool // the rollout goes on
	after   string

	create  []creation
	remove  []removal
	release []*corev1.Pod
}

// outcome is a node and what is to be done about it.
type outcome struct {
	node string
	needs
	entry int // its place among the entries
}

// creation is a node that gets a pod. Since is when the node began to reject pods, if
// it does.
type creation struct {
	node  string
	since time.Time
}

func (d *draft) idle() bool { return len(d.create)+len(d.remove) == 0 }

// leavesRoom reports whether the rollout may go on beside what nodes need anyhow. Nodes
// without a pod are counted as down already, so that filling them takes nothing from the
// bounds; were the rollout to wait for it, it would stand still while one node after the
// other loses its old pod.
func (d *draft) leavesRoom() bool {
	return d.idle() || !d.q.surges && len(d.remove) == 0
}

// settle plans for the nodes once the template has its revision, besides which there
// are these.
func (o *observed) settle(old []*appsv1.ControllerRevision, now time.Time) act.Plan {
	d := &draft{observed: o, elsewhere: o.others, now: now, q: o.asked}
	d.q.now, d.hashes = now, maps.Clone(o.others.hashes)
	for i := range o.views {
		d.fresh = append(d.fresh, d.consider(&o.views[i]))
	}
	d.manage()
	if d.q.rolls && d.leavesRoom() {
		if err := d.roll(); err != nil {
			return act.Plan{Why: "the bounds of the rollout cannot be read", Err: err, Note: d.noted}
		}
	}
	d.setback.troubled = d.sums.troubled
	// What was refused last comes last, or it would hold up all others without end.
	slices.SortStableFunc(d.create, func(a, b creation) int { return inTurn(d.refused, a.node, b.node) })
	slices.SortStableFunc(d.remove, func(a, b removal) int { return inTurn(d.refused, a.node, b.node) })
	d.create, d.remove = d.create[:min(len(d.create), burst)], d.remove[:min(len(d.remove), burst)]
	obsolete := revisions.Obsolete(old, int(ptr.Deref(o.set.Spec.RevisionHistoryLimit, 10)), func(r *appsv1.ControllerRevision) bool { return d.hashes[r.Labels[hashLabel]] > 0 })
	p := act.Plan{Why: d.explain(), Stages: d.steps(obsolete), Status: d.report, Note: d.noted}
	if !d.look.IsZero() {
		p.RequeueAfter, p.Due = max(d.look.Sub(now), time.Millisecond), true
	}
	return p
}

// consider finds out what a node needs, and counts it in.
func (d *draft) consider(n *view) outcome {
	v := d.q.needsOf(n)
	d.sums.add(&v.nodeState, 1)
	count(d.hashes, v.hashes, 1)
	if !v.look.IsZero() && (d.look.IsZero() || v.look.Before(d.look)) {
		d.look = v.look
	}
	d.setback = d.setback.sooner(n.name, &v.nodeState)
	d.entries = append(d.entries, entry{n.name, v.nodeState, v.acts()})
	return outcome{n.name, v, len(d.entries) - 1}
}

// manage plans what nodes need whatever the rollout does.
func (d *draft) manage() {
	for i := range d.fresh {
		v := &d.fresh[i]
		if v.create {
			d.create = append(d.create, creation{v.node, v.since})
		}
		d.remove = append(d.remove, v.remove...)
		d.release = append(d.release, v.release...)
	}
}

// roll plans what the rollout does: what asks for no bounds, and what is within them.
func (d *draft) roll() error {
	needed := len(d.create) + len(d.remove)
	replaced, err := d.pick(rolloutWaiting, d.waiting)
	if err != nil {
		return err
	}
	left, err := d.pick(rolloutLeaving, d.leaving)
	if err != nil {
		return err
	}
	for i := range d.fresh {
		v := &d.fresh[i]
		if v.step.create {
			d.create = append(d.create, creation{node: v.node})
		}
		if v.step.remove != nil {
			d.remove = append(d.remove, removal{v.step.remove, v.node, outdated})
		}
	}
	for _, v := range replaced {
		if d.q.surges {
			d.create = append(d.create, creation{node: v.node})
		} else {
			d.remove = append(d.remove, removal{v.old, v.node, outdated})
		}
	}
	for _, v := range left {
		d.remove = append(d.remove, removal{v.old, v.node, outdated})
	}
	d.rolled = len(d.create)+len(d.remove) > needed
	return nil
}

// candidate is a node that is in one of the states in which the bounds decide. It is
// looked at again unless it has just been.
type candidate struct {
	*view
	before     nodeState
	considered *outcome
}

// pick takes nodes in this state in turn, as far as the bounds allow. What is found
// otherwise by then counts for the bounds at once.
func (d *draft) pick(state rollout, others []candidate) ([]outcome, error) {
	pool := slices.Clone(others)
	for i := range d.fresh {
		if d.fresh[i].rollout == state {
			pool = append(pool, candidate{view: &view{name: d.fresh[i].node}, considered: &d.fresh[i]})
		}
	}
	slices.SortFunc(pool, func(a, b candidate) int { return inTurn(d.turn, a.name, b.name) })
	var picked []outcome
	for i := range pool {
		c := &pool[i]
		limits, err := boundsOf(d.set, d.sums.desired)
		if err != nil {
			return nil, err
		}
		room, beyond := allowance(limits, d.sums)
		if state == rolloutLeaving {
			room = beyond
		}
		if len(picked) >= room {
			break
		}
		if c.considered == nil {
			d.sums.add(&c.before, -1)
			count(d.hashes, c.before.hashes, -1)
			now := d.consider(c.view)
			c.considered = &now
		}
		d.entries[c.considered.entry].again = true
		if c.considered.rollout == state {
			picked, d.after = append(picked, *c.considered), c.name
		}
	}
	return picked, nil
}

// inTurn compares two nodes by whose turn comes first after this one's.
func inTurn(after, a, b string) int {
	return cmp.Or(pods.FalseFirst(a <= after, b <= after), strings.Compare(a, b))
}

// noted is what is remembered of it all. A deletion that was held back is none.
func (d *draft) noted(results act.Results) any {
	n := noted{terms: d.terms, at: d.at, whole: d.whole, entries: d.entries, after: d.after}
	for _, r := range results {
		if pod, is := r.Step.About().(*corev1.Pod); is && r.Became == act.Refused && n.refused == "" {
			n.refused = nodeOf(pod)
		}
	}
	held := results.Held()
	for _, r := range d.remove {
		if r.why == failed && !held[r.pod.UID] && !(d.patient && rejections.Rejected(r.pod)) {
			n.failed = append(n.failed, failures(d.set, r.node))
		}
	}
	return n
}
