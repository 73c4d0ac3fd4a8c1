package cronjob

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// observed is what is decided on.
type observed struct {
	cron *batchv1.CronJob
	// jobs are those that the CronJob controls.
	jobs []*batchv1.Job
	// live are active Jobs that the cache does not show and that exist.
	live map[types.UID]bool
}

// event is what somebody is told about the CronJob.
type event struct{ kind, reason, message string }

// start is a Job that is to be created.
type start struct {
	at time.Time
	// zone is that in which the Job's time is written down.
	zone *time.Location
	// replace are the Jobs that go first.
	replace []corev1.ObjectReference
}

// plan is what a look at a CronJob came to, in the order in which it is done.
type plan struct {
	remove []*batchv1.Job
	events []event
	start  *start
	// status is the wanted one, unless something is started.
	status batchv1.CronJobStatus
	// next is when to look again, zero is when something changes.
	next time.Time
	why  string
}

func (p *plan) tell(kind, reason, format string, args ...any) {
	p.events = append(p.events, event{kind, reason, fmt.Sprintf(format, args...)})
}

// explained is what the debug endpoint shows of a plan.
type explained struct {
	Start  string   `json:"start,omitempty"`
	Remove []string `json:"remove,omitempty"`
	Next   string   `json:"next,omitempty"`
	Why    string   `json:"why"`
}

func (p plan) explain() explained {
	e := explained{Why: p.why}
	for _, job := range p.remove {
		e.Remove = append(e.Remove, job.Name)
	}
	if p.start != nil {
		e.Start = p.start.at.Format(time.RFC3339)
	}
	if !p.next.IsZero() {
		e.Next = p.next.Format(time.RFC3339)
	}
	return e
}

// decide looks at a CronJob and its Jobs at this time.
func decide(o observed, now time.Time) plan {
	p := plan{status: *o.cron.Status.DeepCopy(), remove: surplus(o.cron, o.jobs)}
	for _, job := range p.remove {
		deactivate(&p.status, job.UID)
	}
	p.follow(o)
	p.dropMissing(o)
	spec := &o.cron.Spec
	if o.cron.DeletionTimestamp != nil {
		p.why = "it is being deleted"
		return p
	}
	zone, err := zoneOf(spec)
	if err != nil {
		p.tell(corev1.EventTypeWarning, "UnknownTimeZone", "invalid timeZone: %q: %s", *spec.TimeZone, err)
		p.why = "its time zone is not known"
		return p
	}
	if spec.Suspend != nil && *spec.Suspend {
		p.why = "it is suspended"
		return p
	}
	if zoneInside(spec.Schedule) {
		p.tell(corev1.EventTypeWarning, "UnsupportedSchedule", "CRON_TZ or TZ used in schedule %q is not officially supported, "+
			"see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details", spec.Schedule)
	}
	schedule, err := parse(spec)
	if err != nil {
		p.tell(corev1.EventTypeWarning, "UnparseableSchedule", "unparseable schedule: %q : %s", spec.Schedule, err)
		p.why = "its schedule cannot be read"
		return p
	}
	p.due(o.cron, schedule, cmp.Or(zone, time.UTC), now)
	return p
}

// due decides whether a Job is to be started, and when to look again.
func (p *plan) due(c *batchv1.CronJob, schedule cron.Schedule, zone *time.Location, now time.Time) {
	earliest := since(c, lastOf(&p.status))
	owed := withinDeadline(c, earliest, now)
	found, err := startsIn(schedule, owed, now)
	if err != nil {
		p.tell(corev1.EventTypeWarning, "InvalidSchedule", "invalid schedule: %s : %s", c.Spec.Schedule, err)
		p.why = "its schedule has no times"
		return
	}
	p.next = shortlyAfter(found.next)
	if !owed.Equal(earliest) {
		p.next = nextLook(schedule, earliest, now)
	}
	if found.latest.IsZero() {
		p.why = "no start is due"
		return
	}
	if found.missed > manyMissed {
		p.tell(corev1.EventTypeWarning, "TooManyMissedTimes", "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew")
	}
	switch at := found.latest; {
	case tooLate(c, at, now):
		p.tell(corev1.EventTypeWarning, "MissSchedule", "Missed scheduled time to start a job: %s", at.UTC().Format(time.RFC1123Z))
		p.why = "its deadline for a start is over"
	case listed(&p.status, c.Namespace, jobName(c, at)) || p.status.LastScheduleTime.Equal(&metav1.Time{Time: at}):
		p.why = "that start has been made"
	case c.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && len(p.status.Active) > 0:
		p.tell(corev1.EventTypeNormal, "JobAlreadyActive", "Not starting job because prior execution is running and concurrency policy is Forbid")
		p.why = "the job before is running"
	default:
		p.begin(c, at, zone)
		p.next = nextLook(schedule, at, now)
	}
}

func (p *plan) begin(c *batchv1.CronJob, at time.Time, zone *time.Location) {
	p.start = &start{at: at, zone: zone}
	p.why = "a start is due"
	if c.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent && len(p.status.Active) > 0 {
		p.start.replace = slices.Clone(p.status.Active)
		p.why = "a start is due, in place of " + names(p.status.Active)
	}
}

func names(refs []corev1.ObjectReference) string {
	all := make([]string, len(refs))
	for i := range refs {
		all[i] = refs[i].Name
	}
	return strings.Join(all, ", ")
}

func lastOf(s *batchv1.CronJobStatus) *time.Time {
	if s.LastScheduleTime == nil {
		return nil
	}
	return &s.LastScheduleTime.Time
}
