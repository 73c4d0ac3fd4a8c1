package nodelifecycle

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// podSummary is shown for a pod at the debug endpoint.
type podSummary struct {
	Why string `json:"why"`
}

// notReadyCondition is what to set on a pod of a node that is not ready; nil
// when the pod says so already or never said that it was ready. Reason and
// message stay those the node gave.
func notReadyCondition(pod *corev1.Pod, now time.Time) *corev1.PodCondition {
	ready := pods.Condition(pod, corev1.PodReady)
	if ready == nil || ready.Status == corev1.ConditionFalse {
		return nil
	}
	set := *ready
	set.Status, set.LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(now)
	return &set
}

// syncPod marks a pod not ready whose node is not.
func (c *Controller) syncPod(ctx context.Context, key types.NamespacedName) runner.Result {
	pod, err := c.pods.Pods(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.podWrites.Forget(key)
		return runner.Done()
	}
	if err != nil {
		return runner.Done(err)
	}
	c.mu.Lock()
	notReady := c.cluster.notReady(pod.Spec.NodeName)
	c.mu.Unlock()
	if !notReady {
		return runner.Done().Because(&podSummary{"the node is ready or not known yet"})
	}
	set := notReadyCondition(pod, c.clock.Now())
	if set == nil {
		return runner.Done().Because(&podSummary{"the pod is not ready already"})
	}
	return runner.Done(c.markNotReady(ctx, key, pod, set)).Because(&podSummary{"the node is not ready"})
}

// markNotReady writes the condition and then the event; a pod that is gone or
// replaced needs neither.
func (c *Controller) markNotReady(ctx context.Context, key types.NamespacedName, pod *corev1.Pod, set *corev1.PodCondition) error {
	patch, err := pods.StatusPatch{Conditions: []corev1.PodCondition{*set}}.Of(pod)
	if err != nil {
		return fmt.Errorf("encode condition of pod %s: %w", key, err)
	}
	patched, err := c.client.CoreV1().Pods(key.Namespace).Patch(ctx, key.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		if gone, lookErr := c.podWrites.Gone(ctx, podsResource, pod, err); gone || lookErr != nil {
			return lookErr
		}
	}
	if err != nil {
		return fmt.Errorf("patch status of pod %s: %w", key, err)
	}
	c.podWrites.Wrote(key, podsResource, patched)
	c.recorder.Event(pod, corev1.EventTypeWarning, "NodeNotReady", "Node is not ready")
	return nil
}
