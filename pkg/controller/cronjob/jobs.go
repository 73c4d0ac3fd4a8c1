package cronjob

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var kind = batchv1.SchemeGroupVersion.WithKind("CronJob")

// jobName is the same for the same time, so that no time gets two Jobs.
func jobName(c *batchv1.CronJob, at time.Time) string {
	return fmt.Sprintf("%s-%d", c.Name, at.Unix()/60)
}

// newJob returns the Job for that time.
func newJob(c *batchv1.CronJob, at time.Time, zone *time.Location) *batchv1.Job {
	annotations := map[string]string{}
	maps.Copy(annotations, c.Spec.JobTemplate.Annotations)
	annotations[batchv1.CronJobScheduledTimestampAnnotation] = at.In(zone).Format(time.RFC3339)
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Namespace, Name: jobName(c, at),
			Labels: maps.Clone(c.Spec.JobTemplate.Labels), Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(c, kind)},
		},
		Spec: *c.Spec.JobTemplate.Spec.DeepCopy(),
	}
}

// madeFor is the time for which the controller made the Job, unless it did not. It is in the
// zone of the process, in which a schedule without one is computed.
func madeFor(c *batchv1.CronJob, job *batchv1.Job) (time.Time, bool) {
	at, err := time.Parse(time.RFC3339, job.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
	return at.Local(), err == nil && job.Name == jobName(c, at)
}

// reference is how the status names a Job.
func reference(job *batchv1.Job) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: batchv1.SchemeGroupVersion.String(), Kind: "Job", Namespace: job.Namespace, Name: job.Name,
		UID: job.UID, ResourceVersion: job.ResourceVersion,
	}
}

// ended is how the Job ended, Complete or Failed, or empty while it has not.
func ended(job *batchv1.Job) batchv1.JobConditionType {
	for _, c := range job.Status.Conditions {
		if (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) && c.Status == corev1.ConditionTrue {
			return c.Type
		}
	}
	return ""
}

// surplus returns the Jobs beyond the history limits, the oldest.
func surplus(c *batchv1.CronJob, jobs []*batchv1.Job) []*batchv1.Job {
	return append(oldest(jobs, batchv1.JobComplete, c.Spec.SuccessfulJobsHistoryLimit),
		oldest(jobs, batchv1.JobFailed, c.Spec.FailedJobsHistoryLimit)...)
}

func oldest(jobs []*batchv1.Job, end batchv1.JobConditionType, limit *int32) []*batchv1.Job {
	if limit == nil {
		return nil
	}
	var such []*batchv1.Job
	for _, job := range jobs {
		if ended(job) == end {
			such = append(such, job)
		}
	}
	slices.SortFunc(such, byStart)
	return such[:max(len(such)-int(max(*limit, 0)), 0)]
}

// byStart puts the Jobs that were started first before the others, and those
// that were never started last.
func byStart(a, b *batchv1.Job) int {
	x, y := a.Status.StartTime, b.Status.StartTime
	switch {
	case x == nil && y != nil:
		return 1
	case x != nil && y == nil:
		return -1
	case x != nil && !x.Equal(y):
		return x.Compare(y.Time)
	}
	return cmp.Compare(a.Name, b.Name)
}
