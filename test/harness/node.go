package harness

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// node is what a pretend node should look like.
type node struct {
	ready, silent bool
}

// NodeReady makes a node, or brings one back: its lease is renewed every
// second and its Ready condition is True.
func (k *Kubelet) NodeReady(ctx context.Context, name, zone string) error {
	return k.setNode(ctx, name, zone, node{ready: true})
}

// NodeNotReady makes a node that reports that it is not ready, or turns one so.
func (k *Kubelet) NodeNotReady(ctx context.Context, name, zone string) error {
	return k.setNode(ctx, name, zone, node{})
}

// NodeSilent stops the heartbeats of a node; its pods are not looked after.
func (k *Kubelet) NodeSilent(name string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.pretend[name] == nil {
		return fmt.Errorf("silence node %s: there is no such pretend node", name)
	}
	k.pretend[name].silent = true
	return nil
}

// NodeDelete deletes a node and its lease.
func (k *Kubelet) NodeDelete(ctx context.Context, name string) error {
	k.mu.Lock()
	delete(k.pretend, name)
	k.mu.Unlock()
	var errs []error
	if err := k.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		errs = append(errs, fmt.Errorf("delete node %s: %w", name, err))
	}
	if err := k.leases().Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		errs = append(errs, fmt.Errorf("delete lease %s: %w", name, err))
	}
	return errors.Join(errs...)
}

// DeleteAllNodes clears the cluster of nodes, whoever made them.
func (k *Kubelet) DeleteAllNodes(ctx context.Context) error {
	list, err := k.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list nodes: %w", err)
	}
	var errs []error
	for i := range list.Items {
		n := &list.Items[i]
		if len(n.Finalizers) > 0 {
			_, err := k.client.CoreV1().Nodes().Patch(ctx, n.Name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
			errs = append(errs, err)
		}
		errs = append(errs, k.NodeDelete(ctx, n.Name))
	}
	k.mu.Lock()
	clear(k.pretend)
	k.mu.Unlock()
	return errors.Join(errs...)
}

func (k *Kubelet) silent(name string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pretend[name] != nil && k.pretend[name].silent
}

func (k *Kubelet) setNode(ctx context.Context, name, zone string, want node) error {
	k.mu.Lock()
	k.pretend[name] = &want
	k.mu.Unlock()
	made := newNode(name, zone, want)
	if k.mounting() != nil {
		made.Annotations = map[string]string{managedAnnotation: "true"}
	}
	created, err := k.client.CoreV1().Nodes().Create(ctx, made, metav1.CreateOptions{})
	switch {
	case apierrors.IsAlreadyExists(err):
		if err := k.reportNode(ctx, name, want); err != nil {
			return err
		}
	case err != nil:
		return fmt.Errorf("create node %s: %w", name, err)
	case want.ready && len(created.Spec.Taints) > 0:
		// Admission taints every new node, for the node lifecycle controller
		// to lift. Stories without that controller need a usable node too.
		if _, err := k.client.CoreV1().Nodes().Patch(ctx, name, types.MergePatchType, []byte(`{"spec":{"taints":null}}`), metav1.PatchOptions{}); err != nil {
			return fmt.Errorf("lift the taints of node %s: %w", name, err)
		}
	}
	if err := k.renew(ctx, name); err != nil {
		return err
	}
	k.enqueueAll()
	k.enqueueUnmount()
	return nil
}

func newNode(name, zone string, want node) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
	}}}
	if zone != "" {
		n.Labels[corev1.LabelTopologyZone] = zone
	}
	n.Status = corev1.NodeStatus{
		Capacity: corev1.ResourceList{
			corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"),
			corev1.ResourcePods: resource.MustParse("250"), corev1.ResourceEphemeralStorage: resource.MustParse("1Ti"),
		},
		Addresses:  []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeHostName, Address: name}},
		Conditions: nodeConditions(want, metav1.Now()),
		NodeInfo:   corev1.NodeSystemInfo{OperatingSystem: "linux", Architecture: "amd64", KubeletVersion: "v1.36.0"},
	}
	n.Status.Allocatable = n.Status.Capacity
	return n
}

func nodeConditions(want node, now metav1.Time) []corev1.NodeCondition {
	ready := corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", Message: "kubelet is posting ready status"}
	if !want.ready {
		ready.Status, ready.Reason, ready.Message = corev1.ConditionFalse, "KubeletNotReady", "the container runtime is down"
	}
	conditions := []corev1.NodeCondition{
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientMemory"},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasNoDiskPressure"},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, Reason: "KubeletHasSufficientPID"},
		ready,
	}
	for i := range conditions {
		conditions[i].LastHeartbeatTime, conditions[i].LastTransitionTime = now, now
	}
	return conditions
}

// reportNode posts the node's conditions. Conditions merge by type, so those
// that a story has added stay.
func (k *Kubelet) reportNode(ctx context.Context, name string, want node) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": nodeConditions(want, metav1.Now())}})
	if err != nil {
		return fmt.Errorf("encode the status of node %s: %w", name, err)
	}
	_, err = k.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return fmt.Errorf("report the status of node %s: %w", name, err)
	}
	return nil
}

type leaseClient interface {
	Create(context.Context, *coordinationv1.Lease, metav1.CreateOptions) (*coordinationv1.Lease, error)
	Patch(ctx context.Context, name string, kind types.PatchType, data []byte, options metav1.PatchOptions, subresources ...string) (*coordinationv1.Lease, error)
	Delete(context.Context, string, metav1.DeleteOptions) error
}

func (k *Kubelet) leases() leaseClient {
	return k.client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
}

// renew moves the renew time of the node's lease to now.
func (k *Kubelet) renew(ctx context.Context, name string) error {
	now := metav1.NowMicro()
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"renewTime": now}})
	if err != nil {
		return fmt.Errorf("encode the lease of node %s: %w", name, err)
	}
	_, err = k.leases().Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		_, err = k.leases().Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: corev1.NamespaceNodeLease},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &name, LeaseDurationSeconds: new(int32(40)), RenewTime: &now},
		}, metav1.CreateOptions{})
	}
	// The heartbeat may have made it at the same moment.
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("renew the lease of node %s: %w", name, err)
	}
	return nil
}

// heartbeat renews the leases of all nodes that are not silent, and reports a
// node again whose Ready condition someone else has changed.
func (k *Kubelet) heartbeat(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		for name, want := range k.alive() {
			// A node that is being deleted, or an API server that is ending,
			// needs no report; the next beat comes in a second.
			current, err := k.nodes.Get(name)
			if err != nil || k.renew(ctx, name) != nil {
				continue
			}
			if !reports(current, want) {
				_ = k.reportNode(ctx, name, want)
			}
		}
	}
}

func (k *Kubelet) alive() map[string]node {
	k.mu.Lock()
	defer k.mu.Unlock()
	nodes := map[string]node{}
	for name, n := range k.pretend {
		if !n.silent {
			nodes[name] = *n
		}
	}
	return nodes
}

func reports(n *corev1.Node, want node) bool {
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return (c.Status == corev1.ConditionTrue) == want.ready && c.Status != corev1.ConditionUnknown
		}
	}
	return false
}
