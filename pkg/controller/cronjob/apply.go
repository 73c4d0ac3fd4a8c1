package cronjob

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// historyRetry is how soon a Job beyond the history limits is tried again to be
// deleted. It is no error of the CronJob, whose starts must not wait for it.
const historyRetry = time.Minute

// apply carries the plan out: the history, what is told, the start, and last the
// status, which is written also when the start failed.
func (c *Controller) apply(ctx context.Context, key types.NamespacedName, cron *batchv1.CronJob, p plan) runner.Result {
	next := p.next
	for _, job := range p.remove {
		if err := c.removeOld(ctx, key, cron, job); err != nil {
			klog.FromContext(ctx).Info("A job beyond the history limits cannot be deleted", "cronJob", key, "err", err)
			if retry := c.clock.Now().Add(historyRetry); next.IsZero() || retry.Before(next) {
				next = retry
			}
		}
	}
	for _, e := range p.events {
		c.recorder.Event(cron, e.kind, e.reason, e.message)
	}
	var failed error
	if p.start != nil {
		failed = c.start(ctx, key, cron, p.start, &p.status)
	}
	written := c.writeStatus(ctx, key, cron, p.status)
	result := runner.Done(failed, written)
	if !next.IsZero() {
		return result.LookAgain(max(next.Sub(c.clock.Now()), time.Millisecond))
	}
	return result
}

// removeOld deletes a Job of the history, unless it is on its way already.
func (c *Controller) removeOld(ctx context.Context, key types.NamespacedName, cron *batchv1.CronJob, job *batchv1.Job) error {
	if job.DeletionTimestamp != nil {
		return nil
	}
	return c.deleteJob(ctx, key, cron, reference(job))
}

// deleteJob deletes a Job, in the background, and tells how that went.
func (c *Controller) deleteJob(ctx context.Context, key types.NamespacedName, cron *batchv1.CronJob, ref corev1.ObjectReference) error {
	background := metav1.DeletePropagationBackground
	err := c.client.BatchV1().Jobs(cron.Namespace).Delete(ctx, ref.Name, metav1.DeleteOptions{
		PropagationPolicy: &background, Preconditions: &metav1.Preconditions{UID: &ref.UID},
	})
	job := &metav1.ObjectMeta{Namespace: cron.Namespace, Name: ref.Name, UID: ref.UID}
	switch became, err := c.writes.DeleteAnswered(ctx, key, jobResource, job, err); became {
	case consistency.Deleted:
		c.recorder.Eventf(cron, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted job %s", ref.Name)
	case consistency.Failed:
		c.recorder.Eventf(cron, corev1.EventTypeWarning, "FailedDelete", "Deleted job: %v", err)
		return fmt.Errorf("delete job %s/%s: %w", cron.Namespace, ref.Name, err)
	}
	return nil
}

// replace deletes an active Job, if it is the one that was listed.
func (c *Controller) replace(ctx context.Context, key types.NamespacedName, cron *batchv1.CronJob, ref corev1.ObjectReference) error {
	live, err := c.client.BatchV1().Jobs(cron.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
	switch {
	case err != nil:
		c.recorder.Eventf(cron, corev1.EventTypeWarning, "FailedGet", "Get job: %v", err)
		return fmt.Errorf("read job %s/%s: %w", cron.Namespace, ref.Name, err)
	case live.UID != ref.UID:
		return nil // it is gone
	}
	return c.deleteJob(ctx, key, cron, ref)
}

// start makes room for the Job where the policy asks for it, creates the Job and
// enters it into the status.
func (c *Controller) start(ctx context.Context, key types.NamespacedName, cron *batchv1.CronJob, do *start, status *batchv1.CronJobStatus) error {
	for _, ref := range do.replace {
		if err := c.replace(ctx, key, cron, ref); err != nil {
			return fmt.Errorf("make room for the next job of %s: %w", key, err)
		}
		deactivate(status, ref.UID)
	}
	job := newJob(cron, do.at, do.zone)
	created, err := c.client.BatchV1().Jobs(cron.Namespace).Create(ctx, job, metav1.CreateOptions{})
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fmt.Errorf("create job %s/%s: %w", job.Namespace, job.Name, err)
	case apierrors.IsAlreadyExists(err):
		return c.taken(ctx, key, cron, do, job.Name, status)
	case err != nil:
		c.recorder.Eventf(cron, corev1.EventTypeWarning, "FailedCreate", "Error creating job: %v", err)
		return fmt.Errorf("create job %s/%s: %w", job.Namespace, job.Name, err)
	}
	c.writes.Wrote(key, jobResource, created)
	creationSkew.Observe(created.CreationTimestamp.Sub(do.at).Seconds())
	c.recorder.Eventf(cron, corev1.EventTypeNormal, "SuccessfulCreate", "Created job %s", created.Name)
	started(status, created, do.at)
	return nil
}

// taken deals with a name that is in use: by the Job itself, which was made
// before the status could be written, or by somebody else's, which is left alone.
func (c *Controller) taken(ctx context.Context, key types.NamespacedName, cron *batchv1.CronJob, do *start, name string, status *batchv1.CronJobStatus) error {
	live, err := c.client.BatchV1().Jobs(cron.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read job %s/%s, whose name is taken: %w", cron.Namespace, name, err)
	}
	if !metav1.IsControlledBy(live, cron) {
		klog.FromContext(ctx).Info("The name of a job is in use", "cronJob", key, "job", name)
		return nil
	}
	c.writes.Wrote(key, jobResource, live)
	if !uids(status.Active)[live.UID] {
		started(status, live, do.at)
	}
	return nil
}

// writeStatus writes the status if it changed. The cache holds CronJobs whole.
func (c *Controller) writeStatus(ctx context.Context, key types.NamespacedName, cron *batchv1.CronJob, status batchv1.CronJobStatus) error {
	if apiequality.Semantic.DeepEqual(cron.Status, status) {
		return nil
	}
	after := cron.DeepCopy()
	after.Status = status
	written, err := c.client.BatchV1().CronJobs(cron.Namespace).UpdateStatus(ctx, after, metav1.UpdateOptions{})
	if err != nil {
		return fmt.Errorf("write the status of cron job %s: %w", key, err)
	}
	c.writes.Wrote(key, cronJobResource, written)
	return nil
}
