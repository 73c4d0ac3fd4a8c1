package harness

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
)

// NodeTaint puts a taint on a node, in the place of one with its key and effect.
func (k *Kubelet) NodeTaint(ctx context.Context, name string, taint corev1.Taint) error {
	return k.changeNode(ctx, name, func(n *corev1.Node) {
		n.Spec.Taints = append(without(n.Spec.Taints, taint.Key, taint.Effect), taint)
	})
}

// NodeUntaint takes the taints with a key from a node; an effect leaves the others.
func (k *Kubelet) NodeUntaint(ctx context.Context, name, key string, effect corev1.TaintEffect) error {
	return k.changeNode(ctx, name, func(n *corev1.Node) { n.Spec.Taints = without(n.Spec.Taints, key, effect) })
}

func without(taints []corev1.Taint, key string, effect corev1.TaintEffect) []corev1.Taint {
	return slices.DeleteFunc(taints, func(t corev1.Taint) bool {
		return t.Key == key && (effect == "" || t.Effect == effect)
	})
}

// NodeCordon keeps new pods off a node, or no longer.
func (k *Kubelet) NodeCordon(ctx context.Context, name string, on bool) error {
	return k.changeNode(ctx, name, func(n *corev1.Node) { n.Spec.Unschedulable = on })
}

func (k *Kubelet) changeNode(ctx context.Context, name string, change func(*corev1.Node)) error {
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		n, err := k.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(n)
		_, err = k.client.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
		return err
	})
	if err != nil {
		return fmt.Errorf("change node %s: %w", name, err)
	}
	return nil
}
