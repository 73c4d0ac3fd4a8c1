package why

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/seconds"
)

// own is the view of the controller that a kind is for.
func own(views []Controller) Controller {
	if len(views) == 0 {
		return Controller{}
	}
	return views[0]
}

func judgeJob(l *look, job *batchv1.Job, views []Controller) finding {
	return jobFinding(job, own(views).NextLook, l.now)
}

// jobFinding is about a Job that its controller looks at again then.
func jobFinding(job *batchv1.Job, next, now time.Time) finding {
	s := &job.Status
	parallelism := ptr.Deref(job.Spec.Parallelism, 1)
	f := finding{facts: jobFacts(job)}
	condition := func(kinds ...batchv1.JobConditionType) *batchv1.JobCondition {
		for i := range s.Conditions {
			for _, kind := range kinds {
				if c := &s.Conditions[i]; c.Type == kind && c.Status == corev1.ConditionTrue {
					return c
				}
			}
		}
		return nil
	}
	if c := condition(batchv1.JobComplete); c != nil {
		f.over = true
		return f.with(Complete, fmt.Sprintf("it has ended: %s succeeded", plural(s.Succeeded, "pod")))
	}
	if c := condition(batchv1.JobFailed); c != nil {
		f.over = true
		return f.with(Blocked, fmt.Sprintf("it has failed for good (%s), after %s", c.Reason, plural(s.Failed, "failed pod"))).because(c.Message)
	}
	if c := condition(batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet); c != nil {
		return f.with(Progressing, fmt.Sprintf("it is about to end (%s), once %s gone", c.Reason, counted(s.Active+ptr.Deref(s.Terminating, 0), "pod", "is", "are")))
	}
	if by := ptr.Deref(job.Spec.ManagedBy, batchv1.JobControllerName); by != batchv1.JobControllerName {
		return f.with(Waiting, "it is for another controller (spec.managedBy): "+by)
	}
	if ptr.Deref(job.Spec.Suspend, false) {
		return f.with(Paused, fmt.Sprintf("it is suspended (spec.suspend), with %s active", plural(s.Active, "pod")))
	}
	short := parallelism - s.Active
	if left := ptr.Deref(job.Spec.Completions, s.Succeeded+parallelism) - s.Succeeded; left < parallelism {
		short = left - s.Active
	}
	if s.Failed > 0 && short > 0 && next.After(now) && !atDeadline(job, next) {
		f.until = next
		return f.with(Waiting, fmt.Sprintf("%s failed, and the next is made in %s (backoff, limit %d)",
			counted(s.Failed, "pod", "has", "have"), inWords(next.Sub(now)), ptr.Deref(job.Spec.BackoffLimit, 6)))
	}
	return f.with(Progressing, fmt.Sprintf("%s active, %d succeeded, %d failed", counted(s.Active, "pod", "is", "are"), s.Succeeded, s.Failed))
}

// atDeadline reports whether the controller looks next because the Job has its deadline then,
// and not to make a pod.
func atDeadline(job *batchv1.Job, next time.Time) bool {
	if job.Spec.ActiveDeadlineSeconds == nil || job.Status.StartTime == nil {
		return false
	}
	deadline := job.Status.StartTime.Add(seconds.Of(*job.Spec.ActiveDeadlineSeconds))
	return !next.Before(deadline.Add(-time.Second))
}

func jobFacts(job *batchv1.Job) []string {
	s := &job.Status
	facts := []string{plural(s.Active, "pod") + " active"}
	if job.Spec.Completions != nil {
		facts = append(facts, fmt.Sprintf("%d of %d succeeded", s.Succeeded, *job.Spec.Completions))
	} else {
		facts = append(facts, fmt.Sprintf("%d succeeded", s.Succeeded))
	}
	facts = append(facts, fmt.Sprintf("%d failed, backoff limit %d", s.Failed, ptr.Deref(job.Spec.BackoffLimit, 6)))
	if s.Ready != nil {
		facts = append(facts, fmt.Sprintf("%d ready", *s.Ready))
	}
	if n := ptr.Deref(s.Terminating, 0); n > 0 {
		facts = append(facts, fmt.Sprintf("%d terminating", n))
	}
	if s.FailedIndexes != nil && *s.FailedIndexes != "" {
		facts = append(facts, "failed indexes "+*s.FailedIndexes)
	}
	return facts
}

func judgeCronJob(_ *look, cron *batchv1.CronJob, views []Controller) finding {
	return cronJobFinding(cron, own(views).NextLook)
}

// cronJobFinding is about a CronJob that its controller looks at again then.
func cronJobFinding(cron *batchv1.CronJob, next time.Time) finding {
	f := finding{facts: []string{"schedule " + cron.Spec.Schedule}}
	if zone := ptr.Deref(cron.Spec.TimeZone, ""); zone != "" {
		f.facts = append(f.facts, "time zone "+zone)
	}
	f.facts = append(f.facts, plural(len(cron.Status.Active), "Job")+" active", "concurrency policy "+string(cron.Spec.ConcurrencyPolicy))
	if last := cron.Status.LastScheduleTime; last != nil {
		f.facts = append(f.facts, "last start at "+last.UTC().Format(time.RFC3339))
	}
	if last := cron.Status.LastSuccessfulTime; last != nil {
		f.facts = append(f.facts, "last success at "+last.UTC().Format(time.RFC3339))
	}
	switch {
	case ptr.Deref(cron.Spec.Suspend, false):
		return f.with(Paused, "it is suspended (spec.suspend)")
	case len(cron.Status.Active) > 0:
		return f.with(Progressing, plural(len(cron.Status.Active), "Job")+" active")
	case next.IsZero():
		return f.with(Waiting, "it waits for its next start")
	}
	f.until = next
	return f.with(Waiting, "it waits for its next start, at about "+next.UTC().Format(time.RFC3339))
}
