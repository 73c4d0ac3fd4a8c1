package job

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/podwriter"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/batch"
)

// patch changes a pod, unless it is gone. Of a pod that is there a refusal is an
// error, whatever its code: what it was to change has not changed.
func (c *Controller) patch(ctx context.Context, key Key, pod *corev1.Pod, patch []byte) error {
	_, err := c.writer.Patch(ctx, key, pod, patch)
	if !apierrors.IsNotFound(err) {
		return err
	}
	there, looked := c.isThere(ctx, pod)
	switch {
	case looked != nil:
		return fmt.Errorf("%w; look whether it is gone: %w", err, looked)
	case there:
		return err
	}
	return nil
}

// isThere reports whether the API server has the pod. The role allows to list pods,
// not to get one.
func (c *Controller) isThere(ctx context.Context, pod *corev1.Pod) (bool, error) {
	live, err := c.client.CoreV1().Pods(pod.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector(metav1.ObjectNameField, pod.Name).String()})
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(live.Items, func(p corev1.Pod) bool { return p.UID == pod.UID }), nil
}

// release takes the finalizers off these pods, and returns those that have none now.
func (c *Controller) release(ctx context.Context, key Key, all []*corev1.Pod) ([]*corev1.Pod, error) {
	done := make([]bool, len(all))
	_, err := batch.Parallel(ctx, len(all), func(ctx context.Context, i int) error {
		err := c.patch(ctx, key, all[i], releasePatch(all[i].UID, ""))
		done[i] = err == nil
		return err
	})
	var released []*corev1.Pod
	for i, pod := range all {
		if done[i] {
			released = append(released, pod)
		}
	}
	return released, err
}

// releasePatch takes the finalizer off the pod with this UID, at this version if
// one is given.
func releasePatch(pod types.UID, version string) []byte {
	return podPatch(pod, version, "$deleteFromPrimitiveList/finalizers")
}

// trackPatch gives the pod with this UID the finalizer.
func trackPatch(pod types.UID) []byte { return podPatch(pod, "", "finalizers") }

func podPatch(pod types.UID, version, finalizers string) []byte {
	meta := map[string]any{"uid": pod, finalizers: []string{batchv1.JobTrackingFinalizer}}
	if version != "" {
		meta["resourceVersion"] = version
	}
	patch, _ := json.Marshal(map[string]any{"metadata": meta})
	return patch
}

// discardPod deletes a pod that is not to be counted: its finalizer goes first,
// because a pod that is deleted and has it counts as failed. It stays on a pod that
// has changed, which may have succeeded meanwhile.
func (c *Controller) discardPod(ctx context.Context, key Key, job podwriter.Owner, pod *corev1.Pod) error {
	if tracked(pod) {
		if _, err := c.writer.Patch(ctx, key, pod, releasePatch(pod.UID, pod.ResourceVersion)); err != nil && !apierrors.IsNotFound(err) {
			return err
		}
	}
	return c.writer.Delete(ctx, key, job, pod)
}

// writeStatus writes the status if the Job is still the one that was read: what
// was counted is only right together with what it was counted on.
func (c *Controller) writeStatus(ctx context.Context, key Key, job *batchv1.Job, status batchv1.JobStatus) (*batchv1.Job, error) {
	changed := *job
	status.DeepCopyInto(&changed.Status)
	began := c.reports.Now()
	written, err := c.client.BatchV1().Jobs(job.Namespace).UpdateStatus(ctx, &changed, metav1.UpdateOptions{})
	if err != nil {
		return nil, err
	}
	countPods(job, status)
	c.writes.Wrote(key, jobResource, written)
	c.reports.Sent(key, began)
	return written, nil
}

// tell says what the status now shows.
func (c *Controller) tell(t *tally) {
	job := t.view.job
	switch {
	case t.suspended:
		c.events.Event(job, corev1.EventTypeNormal, "Suspended", "Job suspended")
	case t.resumed:
		c.events.Event(job, corev1.EventTypeNormal, "Resumed", "Job resumed")
	}
	countHandled(t.handled)
}

// tellEnd says how the Job has ended.
func (c *Controller) tellEnd(t *tally) {
	job, d := t.view.job, t.verdict
	countEnd(job, d)
	if !d.success {
		c.events.Event(job, corev1.EventTypeWarning, d.reason, d.message)
		return
	}
	if job.Spec.Completions != nil && t.status.Succeeded > *job.Spec.Completions {
		c.events.Event(job, corev1.EventTypeWarning, "TooManySucceededPods", "Too many succeeded pods running after completion count reached")
	}
	c.events.Event(job, corev1.EventTypeNormal, "Completed", "Job completed")
}
