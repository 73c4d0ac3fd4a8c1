package nodelifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// nodeSummary is shown for a node at the debug endpoint.
type nodeSummary struct {
	Silent bool              `json:"silent,omitempty"`
	Add    []string          `json:"addTaints,omitempty"`
	Remove []string          `json:"removeTaints,omitempty"`
	Labels map[string]string `json:"setLabels,omitempty"`
	Why    string            `json:"why"`
}

// syncNode brings conditions, taints and labels of one node to what they should be.
func (c *Controller) syncNode(ctx context.Context, key target) runner.Result {
	node, err := c.nodes.Get(key.node)
	if apierrors.IsNotFound(err) {
		c.nodeWrites.Forget(key)
		return runner.Done()
	}
	if err != nil {
		return runner.Done(err)
	}
	summary, err := c.bring(ctx, key, node)
	if apierrors.IsConflict(err) { // decide again from what the node is now, once
		live, getErr := c.client.CoreV1().Nodes().Get(ctx, key.node, metav1.GetOptions{})
		if apierrors.IsNotFound(getErr) {
			return runner.Done()
		}
		if getErr != nil {
			return runner.Done(fmt.Errorf("get node %s: %w", key.node, getErr))
		}
		summary, err = c.bring(ctx, key, live)
	}
	if apierrors.IsNotFound(err) {
		if gone, lookErr := c.nodeWrites.Gone(ctx, nodesResource, node, err); gone || lookErr != nil {
			err = lookErr
		}
	}
	return runner.Done(err).Because(summary)
}

// bring writes at most one patch of the node's status and one of the node.
func (c *Controller) bring(ctx context.Context, key target, node *corev1.Node) (*nodeSummary, error) {
	now := c.clock.Now()
	c.mu.Lock()
	set := c.cluster.silence(node, c.leaseAt(leaseKey(node.Name)), now)
	c.mu.Unlock()
	summary := &nodeSummary{Silent: len(set) > 0}
	if summary.Silent {
		patched, err := c.reportSilence(ctx, key, node, set)
		if err != nil {
			return summary, err
		}
		node = patched // whole and current, as the API server returned it
	}
	c.mu.Lock()
	given := c.cluster.orderOf(node)
	c.mu.Unlock()
	taints, labels := planTaints(node, given), planLabels(node)
	summary.explain(taints, labels)
	if !taints.empty() || labels != nil {
		if err := c.patchNode(ctx, key, node, taints, labels, now); err != nil {
			return summary, err
		}
	}
	c.followUp(node, given, taints)
	return summary, nil
}

// followUp keeps the order to taint until the cache shows the taint, so that a
// pass in between does not spend another of the zone's tokens on this node.
func (c *Controller) followUp(node *corev1.Node, given order, done taintPlan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case done.evicts:
		if r := c.cluster.nodes[node.Name]; r != nil {
			evictionsTotal.WithLabelValues(r.zone).Inc()
		}
	case given != noOrder:
		c.cluster.carriedOut(node, given)
	}
}

func (s *nodeSummary) explain(taints taintPlan, labels map[string]string) {
	s.Labels = labels
	for _, t := range taints.add {
		s.Add = append(s.Add, t.String())
	}
	for _, t := range taints.remove {
		s.Remove = append(s.Remove, t.String())
	}
	switch {
	case s.Silent:
		s.Why = "not heard from for the grace period"
	case taints.evicts:
		s.Why = "not ready, and the rate of its zone allows the NoExecute taint"
	case !taints.empty():
		s.Why = "taints follow conditions"
	case labels != nil:
		s.Why = "labels follow labels"
	default:
		s.Why = "as it should be"
	}
}

// precondition makes a patch fail when the node is not the one decided on.
type precondition struct {
	UID             types.UID         `json:"uid,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
	Labels          map[string]string `json:"labels,omitempty"`
}

// reportSilence sets the conditions, then says so in an event and wakes the
// pods, if the node was ready until now.
func (c *Controller) reportSilence(ctx context.Context, key target, node *corev1.Node, set []corev1.NodeCondition) (*corev1.Node, error) {
	type status struct {
		Order      []conditionKey         `json:"$setElementOrder/conditions"`
		Conditions []corev1.NodeCondition `json:"conditions"`
	}
	order := inOrder(node, set)
	patch, err := json.Marshal(struct {
		Metadata precondition `json:"metadata"`
		Status   status       `json:"status"`
	}{precondition{UID: node.UID, ResourceVersion: node.ResourceVersion}, status{order, set}})
	if err != nil {
		return nil, fmt.Errorf("encode conditions of node %s: %w", node.Name, err)
	}
	patched, err := c.client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return nil, fmt.Errorf("patch status of node %s: %w", node.Name, err)
	}
	c.nodeWrites.Wrote(key, nodesResource, patched)
	if readyStatus(node) != corev1.ConditionTrue {
		return patched, nil
	}
	c.recorder.Eventf(referTo(node), corev1.EventTypeNormal, "NodeNotReady", "Node %s status is now: %s", node.Name, "NodeNotReady")
	return patched, c.wakePodsOn(node.Name)
}

// patchNode sets labels and taints in one request. The list of taints is
// written whole, so the patch holds for this version of the node only.
func (c *Controller) patchNode(ctx context.Context, key target, node *corev1.Node, taints taintPlan, labels map[string]string, now time.Time) error {
	type spec struct {
		Taints []corev1.Taint `json:"taints"`
	}
	body := struct {
		Metadata precondition `json:"metadata"`
		Spec     *spec        `json:"spec,omitempty"`
	}{Metadata: precondition{UID: node.UID, ResourceVersion: node.ResourceVersion, Labels: labels}}
	if !taints.empty() {
		body.Spec = &spec{taints.apply(node, now)}
	}
	patch, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode taints of node %s: %w", node.Name, err)
	}
	patched, err := c.client.CoreV1().Nodes().Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err != nil {
		return fmt.Errorf("patch node %s: %w", node.Name, err)
	}
	c.nodeWrites.Wrote(key, nodesResource, patched)
	return nil
}
