package nodelifecycle

import (
	"fmt"
	"slices"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// observedNode is a node and what is remembered of it.
type observedNode struct {
	node   *corev1.Node
	lease  *coordinationv1.Lease
	memory memory
	graces graces
	// pods are those on a node that is silent, or whose report was not answered.
	pods []types.NamespacedName
	// live: the node was read live, and shows what the memory may not know.
	live bool
}

// plan brings conditions, taints and labels of a node to what they should be, with at
// most one patch of its status, one of its taints and one of its labels. A node that has changed meanwhile
// is planned for as it is now, once.
func (o observedNode) plan(now time.Time) act.Plan {
	ready := readyStatus(o.node) == corev1.ConditionTrue
	if ready && o.memory.unanswered != o.node.ResourceVersion {
		o.memory.unanswered = "" // that report has not arrived, and was for that version only
	}
	var set []corev1.NodeCondition
	if o.memory.silent {
		set = conditionsOfSilence(o.node, now)
	}
	leaves := ready || o.memory.unanswered != ""
	switch {
	case len(set) > 0:
		return o.report(now, set, leaves)
	case leaves && !ready:
		return o.arrived(now)
	}
	return o.taints(now)
}

// afresh plans once more from what the node is like; nil when it was looked at.
func (o observedNode) afresh(now time.Time) func(client.Object) act.Plan {
	if o.live {
		return nil
	}
	return func(live client.Object) act.Plan {
		again := o
		again.node, again.live = live.(*corev1.Node), true
		again.memory = o.memory.looked(again.node, o.lease, o.graces, now)
		return again.plan(now)
	}
}

// report sets the conditions of a node that is silent. When it was ready until now, and so
// leaves that, an event says so, and its pods are looked at.
func (o observedNode) report(now time.Time, set []corev1.NodeCondition, leaves bool) act.Plan {
	report := silencePatch(o.node, set)
	if leaves {
		report.Events = act.Events{On: referTo(o.node), DoneReason: reasonLeft, Done: messageLeft}
	}
	return act.Plan{
		Why:    fmt.Sprintf("no heartbeat for %s: setting %d conditions to Unknown", now.Sub(o.memory.probe).Round(time.Second), len(set)),
		Stages: act.Stages(report),
		Afresh: o.afresh(now),
		Note: func(r act.Results) any {
			n := o.note(r)
			switch {
			case leaves && allDone(r):
				n.pods, n.unanswered = o.pods, ""
			case leaves && answerLost(r):
				n.unanswered = o.node.ResourceVersion
			}
			if o.memory.order == orderTaint && !allDone(r) && lostTurn(r) {
				n.carriedOut = orderTaint // the taint is not set either: see taints
			}
			return n
		},
		Then: func(r act.Results) act.Plan {
			last := r[len(r)-1]
			if last.Became != act.Done {
				return act.Plan{Why: "the node is gone"}
			}
			reported := o
			reported.node = last.Object.(*corev1.Node) // whole and current, as the API server returned it
			reported.memory.unanswered = ""
			return reported.taints(now)
		},
	}
}

// arrived makes up for what follows from a report, once the node shows that it has arrived
// although no answer came.
func (o observedNode) arrived(now time.Time) act.Plan {
	o.memory.unanswered = ""
	return act.Plan{
		Why: "not ready, as was reported, and no answer came: its pods are looked at",
		Stages: act.Stages(act.Event{On: referTo(o.node), Type: corev1.EventTypeNormal, Reason: reasonLeft,
			Message: fmt.Sprintf(messageLeft, o.node.Name)}),
		Note: func(r act.Results) any {
			n := o.note(r)
			n.pods = o.pods
			return n
		},
		Then: func(act.Results) act.Plan { return o.taints(now) },
	}
}

// taints sets the taints, and then the labels whatever has become of those. The order to taint is kept until the
// cache shows the taint, so that a pass in between does not spend another of the
// zone's tokens on this node. It is lost when the taint was not set: the next try needs
// another token, or all nodes that were refused would be tainted at once later.
func (o observedNode) taints(now time.Time) act.Plan {
	given := o.memory.order
	taints, labels := planTaints(o.node, given), planLabels(o.node)
	p := act.Plan{
		Why: o.why(taints, labels),
		Note: func(r act.Results) any {
			n := o.note(r)
			if allDone(r) && !taints.evicts || taints.evicts && lostTurn(r) {
				n.carriedOut = given
			}
			return n
		},
	}
	if labels != nil {
		p.Then = func(act.Results) act.Plan { return o.copying(labels) }
		p.Else = p.Then
	}
	if taints.empty() {
		return p
	}
	p.Stages, p.Afresh = act.Stages(taintPatch(o.node, taints, now)), o.afresh(now)
	if taints.evicts {
		p.Counts = func(r act.Results) []act.Count {
			if !allDone(r) || lostTurn(r) {
				return nil
			}
			return []act.Count{{Adds: evictionsTotal.WithLabelValues(o.memory.zone), Value: 1}}
		}
	}
	return p
}

// copying sets labels.
func (o observedNode) copying(labels map[string]string) act.Plan {
	return act.Plan{Why: fmt.Sprintf("copying %d labels", len(labels)), Stages: act.Stages(act.Merge(o.node, map[string]any{"labels": labels}))}
}

// why is the reason for taints and labels, or what a node waits for that has all it should.
func (o observedNode) why(taints taintPlan, labels map[string]string) string {
	ready := readyStatus(o.node)
	switch {
	case taints.evicts:
		return fmt.Sprintf("not ready, and the rate of zone %q allows the NoExecute taint", o.memory.zone)
	case !taints.empty():
		return fmt.Sprintf("updating taints to match the conditions: adding %v, removing %v", taints.add, taints.remove)
	case labels != nil:
		return fmt.Sprintf("copying %d labels", len(labels))
	case (ready == corev1.ConditionFalse || ready == corev1.ConditionUnknown) && !has(o.node, notReady) && !has(o.node, unreachable):
		return fmt.Sprintf("not ready: waits until the rate of zone %q allows the NoExecute taint", o.memory.zone)
	case ready == corev1.ConditionFalse || ready == corev1.ConditionUnknown:
		return "not ready, and tainted for it already: conditions, taints and labels are up to date"
	}
	return "conditions, taints and labels are up to date"
}

func (o observedNode) note(r act.Results) note {
	return note{node: o.node, seen: o.live, unanswered: o.memory.unanswered, trouble: requestsFailed(r)}
}

// allDone reports whether what was planned has taken place.
func allDone(results act.Results) bool {
	return !slices.ContainsFunc(results, func(r act.Result) bool { return r.Became != act.Done })
}

// lostTurn reports whether a taint was not set, and is not tried again at once.
func lostTurn(results act.Results) bool {
	return slices.ContainsFunc(results, func(r act.Result) bool {
		switch node, is := r.Object.(*corev1.Node); r.Became {
		case act.Done:
			return is && !has(node, notReady) && !has(node, unreachable) // a webhook has taken it off
		case act.Refused, act.Uncertain, act.OnHold:
			return true
		}
		return false
	})
}

// answerLost reports whether it is not known of a step whether it has taken place.
func answerLost(results act.Results) bool {
	return slices.ContainsFunc(results, func(r act.Result) bool { return r.Became == act.Uncertain })
}

// silencePatch sets conditions.
func silencePatch(node *corev1.Node, set []corev1.NodeCondition) act.Patch {
	order := inOrder(node, set)
	return patchOf(node, "status", "status", map[string]any{"$setElementOrder/conditions": order, "conditions": set})
}

// taintPatch sets taints. Their list is written whole, so the patch holds for this version
// of the node only.
func taintPatch(node *corev1.Node, taints taintPlan, now time.Time) act.Patch {
	return patchOf(node, "", "spec", map[string]any{"taints": taints.apply(node, now)})
}

// patchOf changes a part of the node in the version that was decided on.
func patchOf(node *corev1.Node, subresource, part string, fields map[string]any) act.Patch {
	body := act.Body(map[string]any{"metadata": map[string]any{"uid": node.UID, "resourceVersion": node.ResourceVersion}, part: fields})
	return act.Patch{Of: node, Type: types.StrategicMergePatchType, Data: body, Subresource: subresource, Versioned: true}
}

// referTo is what events about a node are on: its name and UID alone.
func referTo(node *corev1.Node) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: node.Name, UID: node.UID}}
}
