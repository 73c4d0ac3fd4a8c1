package harness

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
)

// KwokNode is the simulated node of this number.
func KwokNode(i int) *corev1.Node {
	name := fmt.Sprintf("node-%d", i)
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("64"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			AliveLabel: "alive", corev1.LabelHostname: name, corev1.LabelOSStable: "linux", corev1.LabelArchStable: "amd64",
			corev1.LabelTopologyZone: fmt.Sprintf("zone-%d", i%3)}},
		Status: corev1.NodeStatus{Capacity: capacity, Allocatable: capacity},
	}
}

// AddNodes adds simulated nodes named node-0, node-1 ... in three zones and
// waits until they are Ready.
func (k *Kwok) AddNodes(ctx context.Context, count int) error {
	errs := make([]error, count)
	workqueue.ParallelizeUntil(ctx, 16, count, func(i int) {
		_, errs[i] = k.Client.CoreV1().Nodes().Create(ctx, KwokNode(i), metav1.CreateOptions{})
	})
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("create a node: %w", err)
		}
	}
	return WaitFor(ctx, 2*time.Minute, func(ctx context.Context) error {
		nodes, err := k.Client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for _, n := range nodes.Items {
			for _, condition := range n.Status.Conditions {
				if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		if ready < count {
			return fmt.Errorf("%d of %d nodes are Ready", ready, count)
		}
		return nil
	})
}

// Silence takes a node from the simulator: no more heartbeats, and nothing
// happens to its pods.
func (k *Kwok) Silence(ctx context.Context, node string) error {
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:null}}}`, AliveLabel)
	if _, err := k.Client.CoreV1().Nodes().Patch(ctx, node, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		return fmt.Errorf("silence node %s: %w", node, err)
	}
	return nil
}

// WaitFor calls condition every 20 ms until it returns nil or the time is up;
// then its last error is returned, and not that a call was cut short by the end.
func WaitFor(ctx context.Context, within time.Duration, condition func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	var last error
	for {
		err := condition(ctx)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("after %s: %w", within, last)
		case <-tick.C:
		}
	}
}
