package nodelifecycle

import (
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// annotationLost, with the value "true", says that the node is lost: the brake does not
// hold it.
const annotationLost = "kube-kcm.github.io/node-lost"

// hold applies the brake when more nodes than its share fell silent within one grace
// period in which this process had trouble itself, and releases it when that has been
// over for a whole grace period. While it is on, nodes that are not marked yet are taken
// for what they said last.
func (c *cluster) hold() {
	if c.brakeShare <= 0 {
		return
	}
	f := c.found
	for _, r := range c.visited {
		if r.proven && c.now.Sub(r.since) <= c.graces.monitor {
			f.fell++
		}
		if r.held = r.proven && r.status != corev1.ConditionUnknown && !r.lost(); r.held {
			f.held++
		}
	}
	was, trouble := c.braked, !c.view.trouble.IsZero() && c.now.Sub(c.view.trouble) <= c.graces.monitor
	c.braked = trouble && f.held > 0 && (was || float32(f.fell) > c.brakeShare*float32(len(c.visited)))
	if !c.braked {
		f.held = 0
		for _, r := range c.visited {
			r.held = false
		}
	}
	f.brakeApplied, f.brakeReleased = c.braked && !was, was && !c.braked
}

// lost reports whether somebody has said that the node is.
func (r *memory) lost() bool { return r.object.Annotations[annotationLost] == "true" }

// brakeEvents say that the brake was applied or released. They are on the lease of the
// leader of this process, like those of its election.
func (o observedPass) brakeEvents() []act.Step {
	on := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: o.leader.Namespace, Name: o.leader.Name}}
	switch {
	case o.brakeApplied:
		return []act.Step{act.Event{On: on, Type: corev1.EventTypeWarning, Reason: "NodeOutageBrakeApplied", Message: fmt.Sprintf(
			"%d of %d nodes fell silent within %s in which requests of this process failed or its watch was behind: %d nodes are not marked unknown until nothing has failed for %s. Nodes that are lost can be annotated with %s=true",
			o.fell, o.nodes, o.grace, o.held, o.grace, annotationLost)}}
	case o.brakeReleased:
		return []act.Step{act.Event{On: on, Type: corev1.EventTypeNormal, Reason: "NodeOutageBrakeReleased", Message: fmt.Sprintf(
			"Nodes are marked unknown again: nothing has failed for %s, or no node waits", o.grace)}}
	}
	return nil
}

// requestsFailed reports whether the API server could not answer, or answered that it
// cannot now.
func requestsFailed(results act.Results) bool {
	return slices.ContainsFunc(results, func(r act.Result) bool {
		return r.Err != nil && (consistency.OutcomeUnknown(r.Err) || apierrors.IsTooManyRequests(r.Err))
	})
}
