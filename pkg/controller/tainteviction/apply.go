package tainteviction

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

const eventReason = "TaintManagerEviction"

// evict announces the deletion of a pod once, marks the pod and deletes it. The
// appointment stays until the pod is deleted, so that a retry announces nothing.
func (c *Controller) evict(ctx context.Context, key types.NamespacedName, pod *corev1.Pod, at time.Time) error {
	booked := c.appointmentOf(key)
	switch {
	case booked == nil:
		booked = &appointment{uid: pod.UID, at: at}
	case booked.announced:
		at = booked.at
	case booked.at.After(at): // it need not wait any more
		c.cancel(key)
		booked = &appointment{uid: pod.UID, at: at}
	}
	if !booked.announced {
		c.say(key, "Marking for deletion Pod %s")
		booked.announced = true
		c.book(key, *booked)
	}
	done, err := c.markAndDelete(ctx, key, pod)
	if err != nil {
		return err
	}
	c.unbook(key)
	if done {
		podDeletions.Inc()
		podDeletionSeconds.Observe(c.clock.Since(at).Seconds())
	}
	return nil
}

// markAndDelete reports whether this call deleted the pod; it did not if a live
// read shows that the pod is gone, or that another has taken its name.
func (c *Controller) markAndDelete(ctx context.Context, key types.NamespacedName, pod *corev1.Pod) (bool, error) {
	err := c.mark(ctx, key, pod)
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		if gone, lookErr := c.writes.Gone(ctx, podsResource, pod, err); gone || lookErr != nil {
			return false, lookErr
		}
	}
	if err != nil {
		return false, fmt.Errorf("patch status of pod %s: %w", key, err)
	}
	err = c.client.CoreV1().Pods(key.Namespace).Delete(ctx, key.Name, *metav1.NewPreconditionDeleteOptions(string(pod.UID)))
	became, err := c.writes.DeleteAnswered(ctx, key, podsResource, pod, err)
	if err != nil {
		return false, fmt.Errorf("delete pod %s: %w", key, err)
	}
	return became == consistency.Deleted, nil
}

// mark sets the condition that tells why the pod goes.
func (c *Controller) mark(ctx context.Context, key types.NamespacedName, pod *corev1.Pod) error {
	all, changed := pods.WithCondition(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: conditionReason, Message: conditionMessage,
		ObservedGeneration: pod.Generation, LastTransitionTime: metav1.NewTime(c.clock.Now()),
	})
	if !changed {
		return nil
	}
	marked := &corev1.Pod{Status: corev1.PodStatus{Conditions: all}}
	patch, err := pods.StatusPatch{Conditions: []corev1.PodCondition{*pods.Condition(marked, corev1.DisruptionTarget)}}.Of(pod)
	if err != nil {
		return err
	}
	patched, err := c.client.CoreV1().Pods(key.Namespace).Patch(ctx, key.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil {
		return err
	}
	c.writes.Wrote(key, podsResource, patched)
	return nil
}

// cancel drops the appointment of a pod, with a word if it was still waiting.
func (c *Controller) cancel(key types.NamespacedName) {
	if a, ok := c.unbook(key); ok && !a.announced {
		c.say(key, "Cancelling deletion of Pod %s")
	}
}

// say sends an event about a pod that may be gone; its UID is not named.
func (c *Controller) say(key types.NamespacedName, what string) {
	ref := &corev1.ObjectReference{APIVersion: "v1", Kind: "Pod", Namespace: key.Namespace, Name: key.Name}
	c.recorder.Eventf(ref, corev1.EventTypeNormal, eventReason, what, key)
}
