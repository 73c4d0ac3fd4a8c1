package nodeipam

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	// mostTries is how often a node is patched in a row before an event says so.
	mostTries = 3
	// behindWait is when to look again whether the cache shows what is there.
	behindWait = time.Second
	// lostWait is when to read live whether a node still has what the cache does not show.
	lostWait = 10 * time.Second
)

// doubt is noted of a node whose CIDRs may have been set by somebody else.
type doubt types.UID

// plan gives a node that has no CIDRs those that are proposed for it.
func plan(o observed, _ time.Time) act.Plan {
	switch {
	case o.behind:
		return act.Plan{Why: "waiting until the cache shows the node as it is", RequeueAfter: behindWait}
	case o.outside != nil:
		err := fmt.Errorf("node %s has a pod CIDR that is not one of this cluster: %w", o.node.Name, o.outside)
		return act.Plan{Why: "it keeps what it has", Terminal: err,
			Stages: act.Stages(act.Event{On: o.node, Type: corev1.EventTypeWarning, Reason: "CIDROutOfRange", Message: sentence(o.outside)})}
	case len(cidrsOf(o.node)) > 0:
		return act.Plan{Why: "it has " + strings.Join(cidrsOf(o.node), ",")}
	case o.node.DeletionTimestamp != nil:
		return act.Plan{Why: "it is being deleted"}
	case o.exhausted != nil:
		return act.Plan{Why: o.exhausted.Error(), Stages: act.Stages(tell(o.node, "CIDRNotAvailable")), Err: o.exhausted}
	case o.there:
		return act.Plan{Why: "waiting until the cache shows that it has " + strings.Join(o.cidrs, ","), RequeueAfter: lostWait,
			Note: func(act.Results) any { return doubt(o.node.UID) }}
	}
	return assignment(o, 1)
}

func sentence(err error) string {
	return "Node has a pod CIDR that is not one of this cluster: " + strings.ReplaceAll(err.Error(), "\n", "; ")
}

// assignment writes the proposal. It stays that of the node whatever becomes of it.
func assignment(o observed, try int) act.Plan {
	data := act.Body(map[string]any{
		"metadata": map[string]any{"uid": o.node.UID},
		"spec":     map[string]any{"podCIDR": o.cidrs[0], "podCIDRs": o.cidrs},
	})
	return act.Plan{
		Why:    fmt.Sprintf("it gets %s, try %d", strings.Join(o.cidrs, ","), try),
		Stages: act.Stages(act.Patch{Of: o.node, Type: types.StrategicMergePatchType, Data: data}),
		Then:   answered,
		Else:   func(r act.Results) act.Plan { return refused(o, try, r) },
		Retry:  lastOnly,
	}
}

// answered fails when the node does not have what was written: nothing would wake it again.
func answered(r act.Results) act.Plan {
	if got, is := r[len(r)-1].Object.(*corev1.Node); is && len(cidrsOf(got)) == 0 {
		err := errors.New("the patch was accepted, but the node has no CIDRs: a webhook may have removed them")
		return act.Plan{Why: err.Error(), Err: err, Retry: lastOnly}
	}
	return act.Plan{Why: "it has them", Retry: lastOnly}
}

// lastOnly retries what the last try failed for: one that succeeds makes up for those before.
func lastOnly(r act.Results) error { return r[len(r)-1:].Err() }

// refused tries once more at once, a few times. A node that is said to be invalid may have
// CIDRs already, and is read live before it is tried again.
func refused(o observed, try int, results act.Results) act.Plan {
	last := results[len(results)-1]
	switch {
	case errors.Is(last.Err, context.Canceled):
		return act.Plan{Why: "the process ends"}
	case apierrors.IsInvalid(last.Err) && !o.looked:
		return act.Plan{Why: "it may have got CIDRs from somebody else", Note: func(act.Results) any { return doubt(o.node.UID) }}
	case try < mostTries:
		return assignment(o, try+1)
	}
	p := act.Plan{Why: fmt.Sprintf("it was refused %d times", try), Stages: act.Stages(tell(o.node, "CIDRAssignmentFailed"))}
	if apierrors.IsInvalid(last.Err) {
		p.Note = func(act.Results) any { return doubt(o.node.UID) }
	}
	return p
}

func tell(n *corev1.Node, reason string) act.Step {
	on := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID}} // no version: it is not about one
	return act.Event{On: on, Type: corev1.EventTypeNormal, Reason: reason, Message: fmt.Sprintf("Node %s status is now: %s", n.Name, reason)}
}
