package cronjob

import (
	"fmt"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// noon is a Saturday, ten seconds after a full minute.
var noon = time.Date(2026, 11, 21, 12, 0, 10, 0, time.UTC)

type option func(*batchv1.CronJob)

// hourly returns a CronJob that was made an hour and a half before noon and
// starts a Job each hour.
func hourly(options ...option) *batchv1.CronJob {
	c := &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web", UID: "web", ResourceVersion: "5", CreationTimestamp: metav1.NewTime(noon.Add(-90 * time.Minute))},
		Spec: batchv1.CronJobSpec{
			Schedule: "0 * * * *", ConcurrencyPolicy: batchv1.AllowConcurrent,
			SuccessfulJobsHistoryLimit: ptr.To(int32(3)), FailedJobsHistoryLimit: ptr.To(int32(1)),
			JobTemplate: batchv1.JobTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}, Annotations: map[string]string{"note": "x"}, Finalizers: []string{"example.com/not-copied"}},
				Spec:       batchv1.JobSpec{Parallelism: ptr.To(int32(2))},
			},
		},
	}
	for _, o := range options {
		o(c)
	}
	return c
}

func schedule(text string) option     { return func(c *batchv1.CronJob) { c.Spec.Schedule = text } }
func zone(name string) option         { return func(c *batchv1.CronJob) { c.Spec.TimeZone = &name } }
func forbid(c *batchv1.CronJob)       { c.Spec.ConcurrencyPolicy = batchv1.ForbidConcurrent }
func replace(c *batchv1.CronJob)      { c.Spec.ConcurrencyPolicy = batchv1.ReplaceConcurrent }
func suspended(c *batchv1.CronJob)    { c.Spec.Suspend = ptr.To(true) }
func beingDeleted(c *batchv1.CronJob) { c.DeletionTimestamp = &metav1.Time{Time: noon} }
func deadline(seconds int64) option {
	return func(c *batchv1.CronJob) { c.Spec.StartingDeadlineSeconds = &seconds }
}

func history(successful, failed int32) option {
	return func(c *batchv1.CronJob) {
		c.Spec.SuccessfulJobsHistoryLimit, c.Spec.FailedJobsHistoryLimit = &successful, &failed
	}
}

func created(at time.Time) option {
	return func(c *batchv1.CronJob) { c.CreationTimestamp = metav1.NewTime(at) }
}
func last(at time.Time) option {
	return func(c *batchv1.CronJob) { c.Status.LastScheduleTime = &metav1.Time{Time: at} }
}
func succeededAt(at time.Time) option {
	return func(c *batchv1.CronJob) { c.Status.LastSuccessfulTime = &metav1.Time{Time: at} }
}

// lists are the active Jobs by their names, which are their UIDs too.
func lists(jobs ...string) option {
	return func(c *batchv1.CronJob) {
		for _, name := range jobs {
			c.Status.Active = append(c.Status.Active, corev1.ObjectReference{APIVersion: "batch/v1", Kind: "Job", Namespace: "ns", Name: name, UID: types.UID(name)})
		}
	}
}

type jobOption func(*batchv1.Job)

// job returns one that web controls and that runs.
func job(name string, options ...jobOption) *batchv1.Job {
	j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: "9",
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(hourly(), kind)}}}
	for _, o := range options {
		o(j)
	}
	return j
}

func begun(age time.Duration) jobOption {
	return func(j *batchv1.Job) { j.Status.StartTime = &metav1.Time{Time: noon.Add(-age)} }
}

func over(end batchv1.JobConditionType) jobOption {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: end, Status: corev1.ConditionTrue})
	}
}

func complete(age time.Duration) jobOption {
	return func(j *batchv1.Job) {
		over(batchv1.JobComplete)(j)
		j.Status.CompletionTime = &metav1.Time{Time: noon.Add(-age)}
	}
}

func ownerless(j *batchv1.Job) { j.OwnerReferences = nil }

func failed(j *batchv1.Job) { over(batchv1.JobFailed)(j) }

func leaving(j *batchv1.Job) { j.DeletionTimestamp = &metav1.Time{Time: noon} }

// made marks the Job as one of the controller's for that time.
func made(at time.Time) jobOption {
	return func(j *batchv1.Job) {
		j.Name = jobName(hourly(), at)
		j.Annotations = map[string]string{batchv1.CronJobScheduledTimestampAnnotation: at.Format(time.RFC3339)}
	}
}

// hour is that hour of the day of noon.
func hour(h int) time.Time { return time.Date(2026, 11, 21, h, 0, 0, 0, time.UTC) }

func activeNames(s batchv1.CronJobStatus) string {
	return names(s.Active)
}

func reasons(d draft) string {
	var all []string
	for _, step := range d.events {
		e := step.(act.Event)
		all = append(all, fmt.Sprintf("%s %s: %s", e.Type, e.Reason, e.Message))
	}
	return strings.Join(all, "; ")
}
