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

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// start is a Job that is to be created.
type start struct {
	at time.Time
	// zone is that in which the Job's time is written down.
	zone *time.Location
	// replace are the Jobs that go first.
	replace []corev1.ObjectReference
}

// draft is what a look at a CronJob came to, in the order in which it is done.
type draft struct {
	cron   *batchv1.CronJob
	remove []*batchv1.Job
	events []act.Step
	start  *start
	// status is the wanted one, without what is started.
	status batchv1.CronJobStatus
	// next is when to look again; zero is when something changes.
	next time.Time
	why  string
}

func (d *draft) record(kind, reason, format string, args ...any) {
	d.events = append(d.events, act.Event{On: d.cron, Type: kind, Reason: reason, Message: fmt.Sprintf(format, args...)})
}

// decide looks at a CronJob and its Jobs at this time. Of the Jobs beyond the history
// limits, which go without a word, those that were kept could not be deleted.
func decide(o observed, now time.Time, kept ...types.UID) draft {
	d := draft{cron: o.cron, status: *o.cron.Status.DeepCopy(), remove: surplus(o.cron, o.jobs)}
	for _, job := range d.remove {
		if !slices.Contains(kept, job.UID) {
			deactivate(&d.status, job.UID)
		}
	}
	d.follow(o, now)
	d.dropMissing(o)
	spec := &o.cron.Spec
	if o.cron.DeletionTimestamp != nil {
		d.why = "it is being deleted"
		return d
	}
	zone, err := zoneOf(spec)
	if err != nil {
		d.record(corev1.EventTypeWarning, "UnknownTimeZone", "invalid timeZone: %q: %s", *spec.TimeZone, err)
		d.why = "its time zone is not known"
		return d
	}
	if spec.Suspend != nil && *spec.Suspend {
		d.why = "it is suspended"
		return d
	}
	if zoneInside(spec.Schedule) {
		d.record(corev1.EventTypeWarning, "UnsupportedSchedule", "CRON_TZ or TZ used in schedule %q is not officially supported, "+
			"see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details", spec.Schedule)
	}
	schedule, err := parse(spec)
	if err != nil {
		d.record(corev1.EventTypeWarning, "UnparseableSchedule", "unparseable schedule: %q : %s", spec.Schedule, err)
		d.why = "its schedule cannot be read"
		return d
	}
	d.due(o.cron, schedule, cmp.Or(zone, time.UTC), now)
	return d
}

// due decides whether a Job is to be started, and when to look again.
func (d *draft) due(c *batchv1.CronJob, schedule cron.Schedule, zone *time.Location, now time.Time) {
	earliest := since(c, lastOf(&d.status))
	owed := withinDeadline(c, earliest, now)
	found, err := startsIn(schedule, owed, now)
	if err != nil {
		d.record(corev1.EventTypeWarning, "InvalidSchedule", "invalid schedule: %s : %s", c.Spec.Schedule, err)
		d.why = "its schedule has no times"
		return
	}
	d.next = shortlyAfter(found.next)
	if !owed.Equal(earliest) {
		d.next = nextLook(schedule, earliest, now)
	}
	if found.latest.IsZero() {
		d.why = "no start is due"
		return
	}
	if found.missed > manyMissed {
		d.record(corev1.EventTypeWarning, "TooManyMissedTimes", "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew")
	}
	switch at := found.latest; {
	case tooLate(c, at, now):
		d.record(corev1.EventTypeWarning, "MissSchedule", "Missed scheduled time to start a job: %s", at.UTC().Format(time.RFC1123Z))
		d.why = fmt.Sprintf("the start of %s is later than its deadline of %ds", at.UTC().Format(time.RFC3339), *c.Spec.StartingDeadlineSeconds)
	case listed(&d.status, c.Namespace, jobName(c, at)) || d.status.LastScheduleTime.Equal(&metav1.Time{Time: at}):
		d.why = "the job of this start exists already: " + jobName(c, at)
	case c.Spec.ConcurrencyPolicy == batchv1.ForbidConcurrent && len(d.status.Active) > 0:
		d.record(corev1.EventTypeNormal, "JobAlreadyActive", "Not starting job because prior execution is running and concurrency policy is Forbid")
		d.why = fmt.Sprintf("%d previous jobs still run: %s", len(d.status.Active), names(d.status.Active))
	default:
		d.begin(c, at, zone)
		d.next = nextLook(schedule, at, now)
	}
}

func (d *draft) begin(c *batchv1.CronJob, at time.Time, zone *time.Location) {
	d.start = &start{at: at, zone: zone}
	d.why = "a start is due"
	if c.Spec.ConcurrencyPolicy == batchv1.ReplaceConcurrent && len(d.status.Active) > 0 {
		d.start.replace = slices.Clone(d.status.Active)
		d.why = "a start is due and replaces " + names(d.status.Active)
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
