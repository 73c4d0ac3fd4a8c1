package daemonset

import (
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// burst is how many pods one reconcile creates at most, and how many it deletes.
const burst = 250

// plan is what to do for a set, and why.
type plan struct {
	why     string
	create  []string             // nodes
	since   map[string]time.Time // since when these nodes reject pods, as far as they do
	remove  []removal
	release []*corev1.Pod
}

func (p *plan) idle() bool { return len(p.create)+len(p.remove) == 0 }

// leavesRoom tells whether the rollout may go on beside this plan. Nodes without a
// pod are counted as down already, so that filling them takes nothing from the
// bounds; were the rollout to wait for it, it would stand still while one node
// after the other loses its old pod.
func (p *plan) leavesRoom(surges bool) bool {
	return p.idle() || !surges && len(p.remove) == 0
}

// limited cuts the plan to one burst; the rest is judged again.
func (p *plan) limited() plan {
	return plan{why: p.why, create: p.create[:min(len(p.create), burst)], since: p.since, remove: p.remove[:min(len(p.remove), burst)], release: p.release}
}

// manage plans what nodes need whatever the rollout does.
func manage(fresh map[string]*verdict) plan {
	p := plan{why: "nodes have what they are to have", since: map[string]time.Time{}}
	for _, node := range slices.Sorted(maps.Keys(fresh)) {
		v := fresh[node]
		if v.create {
			p.create = append(p.create, node)
			if !v.since.IsZero() {
				p.since[node] = v.since
			}
		}
		p.remove = append(p.remove, v.remove...)
		p.release = append(p.release, v.release...)
	}
	if !p.idle() {
		p.why = fmt.Sprintf("%d nodes lack a pod, %d pods are too many or have ended", len(p.create), len(p.remove))
	}
	return p
}

// allowance is how many nodes that wait may get on with the rollout, and how many
// pods may leave nodes that are to have no new one.
func allowance(b bounds, t sums) (waiting, parting int) {
	if b.surge == 0 {
		return max(b.unavailable-t.down, 0), 0
	}
	return max(b.surge-t.surging, 0), max(t.serving-t.desired, 0)
}

// roll adds the steps of the rollout: those that ask for no bounds, and those of
// the nodes that were picked within them.
func (p *plan) roll(fresh, picked map[string]*verdict, surges bool) {
	for _, node := range slices.Sorted(maps.Keys(fresh)) {
		step := fresh[node].step
		if step.create {
			p.create = append(p.create, node)
		}
		if step.remove != nil {
			p.remove = append(p.remove, removal{step.remove, node, outdated})
		}
	}
	for _, node := range slices.Sorted(maps.Keys(picked)) {
		switch v := picked[node]; {
		case v.waits && surges:
			p.create = append(p.create, node)
		case v.waits, v.departs:
			p.remove = append(p.remove, removal{v.old, node, outdated})
		}
	}
	if !p.idle() {
		p.why = fmt.Sprintf("rolling: %d nodes get a new pod, %d lose an old one", len(p.create), len(p.remove))
	}
}

// shown is how many names an explanation holds.
const shown = 10

// explanation is a plan as the debug endpoint shows it. It holds no pods, because
// it is kept for long.
type explanation struct {
	Why      string   `json:"why"`
	Revision string   `json:"revision"`
	Desired  int      `json:"desired"`
	Create   int      `json:"create,omitempty"`
	Delete   int      `json:"delete,omitempty"`
	First    []string `json:"first,omitempty"`
}

func (p *plan) explain(hash string, t sums) explanation {
	e := explanation{Why: p.why, Revision: hash, Desired: t.desired, Create: len(p.create), Delete: len(p.remove)}
	for _, node := range p.create[:min(len(p.create), shown)] {
		e.First = append(e.First, "create on "+node)
	}
	for _, r := range p.remove[:min(len(p.remove), shown)] {
		e.First = append(e.First, "delete "+r.pod.Name)
	}
	return e
}
