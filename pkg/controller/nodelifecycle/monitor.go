package nodelifecycle

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// observedPass is what a pass over all nodes found, and whom the rates let through then.
type observedPass struct {
	*findings
	turn
	nodes int
	// podsOf are those on the nodes whose pods must be looked at again.
	podsOf []types.NamespacedName
	began  time.Time
	period time.Duration
	grace  time.Duration
	// reads is how many reads of live leases were answered.
	reads int
	// leader is the lease of the leader of this process.
	leader types.NamespacedName
	// err is what could not be read.
	err error
}

// plan wakes the nodes and pods that need a write, records events of nodes that came and went, and
// comes back after the monitor period.
func (o observedPass) plan(time.Time) act.Plan {
	var events []act.Step
	for _, node := range o.registered {
		events = append(events, nodeEvent(node, "RegisteredNode", "Registered Node %s in Controller"))
	}
	for _, node := range o.removed {
		events = append(events, nodeEvent(node, "RemovingNode", "Removing Node %s from Controller"))
	}
	return act.Plan{
		Why:    o.why(),
		Stages: act.Stages(append(events, o.brakeEvents()...)...),
		Note: func(act.Results) any {
			return note{wake: slices.Concat(o.wake, o.through), pods: o.podsOf, next: o.next, more: o.more}
		},
		Counts:       func(act.Results) []act.Count { return o.counts() },
		RequeueAfter: o.period,
		Err:          o.err,
	}
}

func nodeEvent(node *corev1.Node, reason, what string) act.Event {
	return act.Event{On: referTo(node), Type: corev1.EventTypeNormal, Reason: reason,
		Message: fmt.Sprintf("Node %s event: %s", node.Name, fmt.Sprintf(what, node.Name))}
}

// why says how many nodes there are, and which zones are not as they should be.
func (o observedPass) why() string {
	parts := []string{fmt.Sprintf("%d nodes, %d to write", o.nodes, len(o.wake)+len(o.through))}
	if o.change != unchanged {
		parts = append(parts, string(o.change))
	}
	if o.unproven > 0 {
		parts = append(parts, fmt.Sprintf("%d nodes may be silent and wait until their leases are read live", o.unproven))
	}
	if o.unread != nil {
		parts = append(parts, o.unread.Error())
	}
	if o.held > 0 {
		parts = append(parts, fmt.Sprintf("the brake holds %d silent nodes", o.held))
	}
	for _, z := range o.zones {
		if z.state != stateNormal {
			parts = append(parts, fmt.Sprintf("zone %q is in %s: %d of %d not ready, %g evictions a second", z.name, z.state, z.notReady, z.ready+z.notReady, z.rate))
		}
	}
	return strings.Join(parts, "; ")
}

// counts sets the gauges of all zones.
func (o observedPass) counts() []act.Count {
	counts := []act.Count{
		{Observes: passSeconds, Since: o.began},
		{Adds: leaseReads.WithLabelValues("answered"), Value: float64(o.reads)},
		{Sets: heldNodes.WithLabelValues("unproven"), Value: float64(o.unproven)},
		{Sets: heldNodes.WithLabelValues("brake"), Value: float64(o.held)},
	}
	if o.unread != nil {
		counts = append(counts, act.Count{Adds: leaseReads.WithLabelValues("failed"), Value: 1})
	}
	for _, name := range o.born {
		counts = append(counts, act.Count{Adds: evictionsTotal.WithLabelValues(name)})
	}
	for _, name := range o.emptied {
		counts = append(counts, zoneCounts(name, 0, 0)...)
	}
	for _, z := range o.zones {
		if z.ready+z.notReady > 0 {
			counts = append(counts, zoneCounts(z.name, z.ready, z.notReady)...)
		}
	}
	return counts
}

// plan wakes the nodes that are let through between two passes, and comes back for the next.
func (t turn) plan(time.Time) act.Plan {
	return act.Plan{
		Why:  fmt.Sprintf("the eviction rates of the zones allow %d nodes", len(t.through)),
		Note: func(act.Results) any { return note{wake: t.through, next: t.next, more: t.more} },
	}
}
