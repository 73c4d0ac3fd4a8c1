package cronjob

import (
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// uids are those of the Jobs that a status lists.
func uids(refs []corev1.ObjectReference) map[types.UID]bool {
	all := make(map[types.UID]bool, len(refs))
	for i := range refs {
		all[refs[i].UID] = true
	}
	return all
}

// listed reports whether the status lists a Job of this name.
func listed(s *batchv1.CronJobStatus, namespace, name string) bool {
	return slices.ContainsFunc(s.Active, func(ref corev1.ObjectReference) bool { return ref.Namespace == namespace && ref.Name == name })
}

func deactivate(s *batchv1.CronJobStatus, uid types.UID) {
	s.Active = slices.DeleteFunc(s.Active, func(ref corev1.ObjectReference) bool { return ref.UID == uid })
}

// started enters a Job that was made for that time.
func started(s *batchv1.CronJobStatus, job *batchv1.Job, at time.Time) {
	s.Active = append(s.Active, reference(job))
	scheduled(s, at)
}

// scheduled enters that a Job was made for that time.
func scheduled(s *batchv1.CronJobStatus, at time.Time) {
	if s.LastScheduleTime == nil || s.LastScheduleTime.Time.Before(at) {
		s.LastScheduleTime = &metav1.Time{Time: at}
	}
}

// follow brings the status up to what the Jobs show. One that says it was made for a time to
// come was not made by the controller: no time before that would be due any more.
func (d *draft) follow(o observed, now time.Time) {
	running := uids(d.status.Active)
	for _, job := range o.jobs {
		end := ended(job)
		at, ours := madeFor(o.cron, job)
		ours = ours && !at.After(now)
		switch listed := running[job.UID]; {
		case !listed && end == "":
			d.record(corev1.EventTypeWarning, "UnexpectedJob", "Saw a job that the controller did not create or forgot: %s", job.Name)
			// A manager was ended between the Job and the status: policies count it.
			if ours && job.DeletionTimestamp == nil {
				started(&d.status, job, at)
			}
		case !listed:
			// The same, and the Job has ended meanwhile: its time is not due once more.
			if ours {
				scheduled(&d.status, at)
			}
		case end != "":
			deactivate(&d.status, job.UID)
			d.record(corev1.EventTypeNormal, "SawCompletedJob", "Saw completed job: %s, condition: %s", job.Name, end)
		}
		if end == batchv1.JobComplete {
			succeeded(&d.status, job.Status.CompletionTime)
		}
	}
}

func succeeded(s *batchv1.CronJobStatus, at *metav1.Time) {
	if at != nil && (s.LastSuccessfulTime == nil || at.After(s.LastSuccessfulTime.Time)) {
		s.LastSuccessfulTime = at.DeepCopy()
	}
}

// dropMissing takes the Jobs off the list that are no more.
func (d *draft) dropMissing(o observed) {
	for _, ref := range missing(&d.status, o.jobs) {
		if !o.live[ref.UID] {
			d.record(corev1.EventTypeNormal, "MissingJob", "Active job went missing: %s", ref.Name)
			deactivate(&d.status, ref.UID)
		}
	}
}

// missing are the active Jobs that are not among these.
func missing(s *batchv1.CronJobStatus, jobs []*batchv1.Job) []corev1.ObjectReference {
	there := make(map[types.UID]bool, len(jobs))
	for _, job := range jobs {
		there[job.UID] = true
	}
	var refs []corev1.ObjectReference
	for _, ref := range s.Active {
		if !there[ref.UID] {
			refs = append(refs, ref)
		}
	}
	return refs
}

// forgotten reports whether a Job runs that the status does not list; the cached
// status may be older than that of the server.
func forgotten(c *batchv1.CronJob, jobs []*batchv1.Job) bool {
	running := uids(c.Status.Active)
	return slices.ContainsFunc(jobs, func(job *batchv1.Job) bool { return ended(job) == "" && !running[job.UID] })
}
