package harness

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
)

// bind gives a pod the fitting node with the fewest pods. A pod that waits for
// a gate, or for another scheduler, is left alone.
func (k *Kubelet) bind(ctx context.Context, pod *corev1.Pod) error {
	if pod.DeletionTimestamp != nil || len(pod.Spec.SchedulingGates) > 0 || pod.Spec.SchedulerName != corev1.DefaultSchedulerName {
		return nil
	}
	nodes, err := k.nodes.List(labels.Everything())
	if err != nil {
		return err
	}
	k.mu.Lock()
	fallback := k.fallback[pod.Namespace]
	k.mu.Unlock()
	if len(nodes) == 0 && fallback != "" {
		// The node's arrival wakes this pod again.
		return k.NodeReady(ctx, fallback, "")
	}
	pods, err := k.pods.List(labels.Everything())
	if err != nil {
		return err
	}
	chosen := choose(pod, nodes, pods)
	if chosen == "" {
		return nil
	}
	if m := k.mounting(); m != nil && k.caresFor(pod.Namespace).Volumes {
		if claimed, err := m.claimed(ctx, pod, chosen); err != nil || !claimed {
			return err
		}
	}
	err = k.client.CoreV1().Pods(pod.Namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID},
		Target:     corev1.ObjectReference{Kind: "Node", Name: chosen},
	}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("bind pod %s: %w", pod.Name, err)
	}
	return nil
}

// choose returns the name of the fitting node with the fewest pods, or "".
func choose(pod *corev1.Pod, nodes []*corev1.Node, pods []*corev1.Pod) string {
	load := map[string]int{}
	for _, node := range nodes {
		if fits(pod, node) {
			load[node.Name] = 0
		}
	}
	for _, other := range pods {
		if _, candidate := load[other.Spec.NodeName]; candidate {
			load[other.Spec.NodeName]++
		}
	}
	if len(load) == 0 {
		return ""
	}
	return slices.MinFunc(slices.Collect(maps.Keys(load)), func(a, b string) int {
		if load[a] != load[b] {
			return load[a] - load[b]
		}
		return strings.Compare(a, b)
	})
}

func fits(pod *corev1.Pod, node *corev1.Node) bool {
	if matches, err := nodeaffinity.GetRequiredNodeAffinity(pod).Match(node); err != nil || !matches {
		return false
	}
	taints := node.Spec.Taints
	if node.Spec.Unschedulable {
		taints = append(slices.Clone(taints), corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule})
	}
	for _, taint := range taints {
		if taint.Effect != corev1.TaintEffectPreferNoSchedule && !tolerated(taint, pod.Spec.Tolerations) {
			return false
		}
	}
	return true
}

func tolerated(taint corev1.Taint, tolerations []corev1.Toleration) bool {
	return slices.ContainsFunc(tolerations, func(t corev1.Toleration) bool {
		return (t.Effect == "" || t.Effect == taint.Effect) &&
			(t.Key == "" || t.Key == taint.Key) &&
			(t.Operator == corev1.TolerationOpExists || t.Value == taint.Value && t.Key != "")
	})
}
