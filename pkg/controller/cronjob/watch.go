package cronjob

import (
	"context"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

type wake = runner.Wake[types.NamespacedName]

// watch says which change wakes which CronJob.
func (c *Controller) watch(cronJobs, jobs toolscache.SharedInformer) error {
	return errors.Join(
		runner.Watch(c.Runner, cronJobs, c.cronJobChanged),
		runner.Watch(c.Runner, jobs, c.jobChanged),
	)
}

// cronJobChanged wakes a CronJob at once, with a new schedule at the next time of
// it. One whose new schedule cannot be read is left alone until that is mended.
func (c *Controller) cronJobChanged(change runner.Change[batchv1.CronJob], w wake) {
	key := client.ObjectKeyFromObject(change.Now())
	switch wait, err := putOff(change.Old, change.New, c.Clock().Now()); {
	case err != nil:
		c.Take(context.Background(), key, act.Event{On: change.New, Type: corev1.EventTypeWarning, Reason: "UnParseableCronJobSchedule",
			Message: "unparseable schedule for cronjob: " + change.New.Spec.Schedule})
	case wait > 0:
		w.AddAfter(key, wait)
	default:
		w.Add(key)
	}
}

// putOff is how long a CronJob with a new schedule waits for the next time of it:
// the times of the new schedule that have passed are not made up for. Zero is a
// change of something else.
func putOff(before, after *batchv1.CronJob, now time.Time) (time.Duration, error) {
	if before == nil || after == nil || before.Spec.Schedule == after.Spec.Schedule && ptr.Equal(before.Spec.TimeZone, after.Spec.TimeZone) {
		return 0, nil
	}
	schedule, err := parse(&after.Spec)
	if err != nil {
		return 0, err
	}
	return nextLook(schedule, since(after, lastOf(&after.Status)), now).Sub(now), nil
}

// jobChanged wakes the owner of a Job, before and after, when something has
// changed that it looks at: pods that come and go within a Job wake nobody.
func (c *Controller) jobChanged(change runner.Change[batchv1.Job], w wake) {
	before, after := controllerOf(change.Old), controllerOf(change.New)
	same := before != nil && after != nil && before.UID == after.UID
	if same && alike(change.Old, change.New) {
		return
	}
	if after != nil {
		c.wakeOwner(change.New.Namespace, after, w)
	}
	if before != nil && !same {
		c.wakeOwner(change.Old.Namespace, before, w)
	}
}

func controllerOf(job *batchv1.Job) *metav1.OwnerReference {
	if job == nil {
		return nil
	}
	return metav1.GetControllerOfNoCopy(job)
}

// alike reports whether two states of a Job are the same to its CronJob.
func alike(a, b *batchv1.Job) bool {
	return a.UID == b.UID && ended(a) == ended(b) && (a.DeletionTimestamp == nil) == (b.DeletionTimestamp == nil) &&
		a.Status.CompletionTime.Equal(b.Status.CompletionTime) && (ended(b) == "" || a.Status.StartTime.Equal(b.Status.StartTime))
}

// wakeOwner wakes the CronJob that the reference means, if it is still that one.
func (c *Controller) wakeOwner(namespace string, ref *metav1.OwnerReference, w wake) {
	if ref.Kind != kind.Kind {
		return
	}
	key := types.NamespacedName{Namespace: namespace, Name: ref.Name}
	if owner, err := reconcile.Cached[batchv1.CronJob](c.cronJobs, key); err == nil && owner.UID == ref.UID {
		w.Add(key)
	}
}
