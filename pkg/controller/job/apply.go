package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/podwriter"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/batch"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// claim returns the pods of the Job by name, after adopting and releasing. An
// adopted pod is to be counted too.
func (c *Controller) claim(ctx context.Context, key Key, job *batchv1.Job, selector labels.Selector) ([]*corev1.Pod, error) {
	owned, err := cache.Lookup[corev1.Pod](c.podIndex, cache.ByController, string(job.UID))
	if err != nil {
		return nil, err
	}
	orphans, err := cache.Adoptable[corev1.Pod](c.podIndex, job.Namespace, selector)
	if err != nil {
		return nil, err
	}
	claims := ownership.Claim(job, selector, slices.Concat(owned, orphans))
	adopted, err := c.writer.Adopt(ctx, key, job, selector, claims.Adopt, func(ctx context.Context) (metav1.Object, error) {
		return c.client.BatchV1().Jobs(job.Namespace).Get(ctx, job.Name, metav1.GetOptions{})
	})
	if err != nil {
		return nil, err
	}
	if err := c.writer.Release(ctx, key, job, claims.Release); err != nil {
		return nil, err
	}
	return slices.SortedFunc(slices.Values(slices.Concat(claims.Owned, adopted)), byName), nil
}

// lookForLate lists live when an earlier process noted a pod that the cache does
// not show: counted now, it might be counted again. It fails while the cache does
// not show what is there; the runner holds the Job back meanwhile.
func (c *Controller) lookForLate(ctx context.Context, key Key, job *batchv1.Job, selector labels.Selector, all []*corev1.Pod) error {
	if !missing(job, all) {
		return nil
	}
	return c.writer.LookForLate(ctx, key, job, selector.String())
}

// missing tells whether the status notes a pod that is not among these.
func missing(job *batchv1.Job, all []*corev1.Pod) bool {
	noted := job.Status.UncountedTerminatedPods
	if noted == nil || len(noted.Succeeded)+len(noted.Failed) == 0 {
		return false
	}
	there := sets.Set[types.UID]{}
	for _, pod := range all {
		there.Insert(pod.UID)
	}
	return !there.HasAll(noted.Succeeded...) || !there.HasAll(noted.Failed...)
}

// carryOut makes or takes away pods.
func (c *Controller) carryOut(ctx context.Context, key Key, v *view, p plan) (did carried, err error) {
	if p.verdict != nil {
		if err = c.takeAway(ctx, key, v.job, p.end, c.writer.Delete, &did); did.deleted == len(p.end) {
			did.verdict = p.verdict
		}
		return did, err
	}
	retracked := c.retrack(ctx, key, p.retrack)
	switch {
	case len(p.remove) > 0:
		err = c.takeAway(ctx, key, v.job, p.remove, c.discardPod, &did)
	case len(p.create) > 0:
		err = c.create(ctx, key, v, p.create, &did)
	}
	did.verdict = completed(v, len(v.active)+did.created-did.deleted)
	return did, errors.Join(retracked, err)
}

// retrack gives pods their finalizer back.
func (c *Controller) retrack(ctx context.Context, key Key, all []*corev1.Pod) error {
	_, err := batch.SlowStart(ctx, len(all), 1, func(ctx context.Context, i int) error {
		err := c.patch(ctx, key, all[i], trackPatch(all[i].UID))
		// Invalid: the pod is on its way out.
		if err != nil && !apierrors.IsInvalid(err) {
			return fmt.Errorf("track pod %s again: %w", all[i].Name, err)
		}
		return nil
	})
	return err
}

func (c *Controller) takeAway(ctx context.Context, key Key, job *batchv1.Job, victims []*corev1.Pod,
	by func(context.Context, Key, podwriter.Owner, *corev1.Pod) error, did *carried) error {
	errs := make([]error, len(victims))
	_, err := batch.Parallel(ctx, len(victims), func(ctx context.Context, i int) error {
		errs[i] = by(ctx, key, job, victims[i])
		return errs[i]
	})
	for i, pod := range victims {
		if errs[i] == nil {
			did.deleted++
			if pods.Ready(pod) {
				did.deletedReady++
			}
		}
	}
	if err != nil {
		return fmt.Errorf("delete pods: %w", err)
	}
	return nil
}

// create makes pods in growing batches, so that a refusal that concerns all of
// them costs a few requests.
func (c *Controller) create(ctx context.Context, key Key, v *view, indexes []int, did *carried) error {
	ref := ownership.ControllerRef(v.job, kind)
	selector := metav1.FormatLabelSelector(v.job.Spec.Selector)
	made, err := batch.SlowStart(ctx, len(indexes), 1, func(ctx context.Context, i int) error {
		err := c.writer.Create(ctx, key, v.job, selector, newPod(v.job, ref, indexes[i], v.held[indexes[i]]))
		if !errors.Is(err, podwriter.ErrEnding) {
			countCreation(v, err)
		}
		return err
	})
	did.created = made
	if err != nil && !errors.Is(err, podwriter.ErrEnding) {
		return fmt.Errorf("create pods: %w", err)
	}
	return nil
}

// track counts: the status that notes the pods, then their finalizers, then the
// status with the numbers. Whatever goes wrong in between, the next reconcile
// finds what is left to do. Numbers of a Job that goes on can wait a little,
// unless it fails and the next try may be minutes away; it returns how long.
func (c *Controller) track(ctx context.Context, key Key, t *tally, failing bool) (time.Duration, error) {
	job := t.view.job
	if wait := c.reports.Wait(key); t.minor && !failing && wait > 0 {
		return wait, nil
	}
	if t.changed {
		written, err := c.writeStatus(ctx, key, job, t.status)
		switch {
		case apierrors.IsNotFound(err):
			return firstRetry, nil // the Job is gone, which the cache shows by then
		case err != nil:
			return 0, fmt.Errorf("note pods: %w", err)
		}
		job = written
	}
	c.tell(t)
	released, releaseErr := c.release(ctx, key, t.release)
	counted := t.released(released)
	ended := releaseErr == nil && t.conclude()
	if wait := c.reports.Wait(key); wait > 0 && counted && !failing && releaseErr == nil && t.verdict == nil {
		return wait, nil
	}
	if counted || ended {
		switch _, err := c.writeStatus(ctx, key, job, t.status); {
		case apierrors.IsNotFound(err):
			return firstRetry, releaseErr
		case err != nil:
			return 0, errors.Join(releaseErr, fmt.Errorf("count pods: %w", err))
		}
	}
	if ended {
		c.tellEnd(t)
	}
	return 0, releaseErr
}

// syncOrphan takes the finalizer off a pod that no Job is going to count. A Job that
// the cache does not show may be one that it does not show yet; its pods keep the
// finalizer until they are deleted, as the garbage collector does when it is gone.
func (c *Controller) syncOrphan(ctx context.Context, key Key) runner.Result {
	item, exists, err := c.podIndex.GetByKey(key.String())
	if err != nil || !exists {
		return runner.Done(err)
	}
	pod := item.(*corev1.Pod)
	if !tracked(pod) {
		return runner.Done()
	}
	// A Job may adopt a pod without owner just now. Then it has changed, and is looked
	// at again. One that names an owner is nobody else's to adopt.
	version := pod.ResourceVersion
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		if !ofJob(ref) {
			return runner.Done()
		}
		version = ""
		job := c.jobOf(pod)
		switch {
		case job == nil && pod.DeletionTimestamp == nil:
			return runner.Done()
		case job != nil && (managedElsewhere(job) || !finished(job)):
			return runner.Done()
		}
	}
	err = c.patch(ctx, key, pod, releasePatch(pod.UID, version))
	if version != "" && apierrors.IsConflict(err) {
		return runner.Done().LookAgain(firstRetry)
	}
	return runner.Done(err)
}
