package cronjob

import (
	"errors"
	"slices"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

const (
	unexpected = "Warning UnexpectedJob: Saw a job that the controller did not create or forgot: "
	completed  = "Normal SawCompletedJob: Saw completed job: "
)

func TestDecide(t *testing.T) {
	elevenToNoon := "12:00"
	for name, tc := range map[string]struct {
		c      *batchv1.CronJob
		jobs   []*batchv1.Job
		live   map[types.UID]bool
		start  string
		events string
		active string
		next   string
		why    string
	}{
		"nothing has come since it was made": {c: hourly(created(noon.Add(-5 * time.Second))), next: "13:00:00.1", why: "no start is due"},
		"the first start":                    {c: hourly(), start: elevenToNoon, next: "13:00:00.1", why: "a start is due"},
		"the next start":                     {c: hourly(last(hour(11))), start: elevenToNoon, next: "13:00:00.1", why: "a start is due"},
		"that start was made":                {c: hourly(last(hour(12))), next: "13:00:00.1", why: "no start is due"},
		"the latest of several":              {c: hourly(last(hour(3))), start: elevenToNoon, next: "13:00:00.1", why: "a start is due"},
		"more than a hundred": {c: hourly(last(hour(12).AddDate(0, 0, -5))), start: elevenToNoon, next: "13:00:00.1", why: "a start is due",
			events: "Warning TooManyMissedTimes: too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"},
		"a hundred": {c: hourly(schedule("* * * * *"), last(hour(12).Add(-100*time.Minute))), start: elevenToNoon, next: "12:01:00.1", why: "a start is due"},
		"more than a hundred, all but a few too long ago": {c: hourly(last(hour(12).AddDate(0, 0, -5)), deadline(7200)), start: elevenToNoon, next: "13:00:00.1", why: "a start is due"},
		"the deadline is over":                            {c: hourly(last(hour(3)), deadline(9)), next: "13:00:00.1", why: "no start is due"},
		"the deadline is not over":                        {c: hourly(last(hour(3)), deadline(11)), start: elevenToNoon, next: "13:00:00.1", why: "a start is due"},
		"suspended":                                       {c: hourly(suspended), why: "it is suspended"},
		"being deleted":                                   {c: hourly(beingDeleted), why: "it is being deleted"},
		"an unknown zone": {c: hourly(zone("Mars/Phobos")), why: "its time zone is not known",
			events: `Warning UnknownTimeZone: invalid timeZone: "Mars/Phobos": unknown time zone Mars/Phobos`},
		"a schedule that cannot be read": {c: hourly(schedule("often")), why: "its schedule cannot be read",
			events: `Warning UnparseableSchedule: unparseable schedule: "often" : expected exactly 5 fields, found 1: [often]`},
		"a schedule without times": {c: hourly(schedule("0 0 31 2 *")), why: "its schedule has no times",
			events: "Warning InvalidSchedule: invalid schedule: 0 0 31 2 * : time difference between two schedules is less than 1 second"},
		"a zone in the schedule": {c: hourly(schedule("TZ=UTC 0 * * * *")), start: elevenToNoon, next: "13:00:00.1", why: "a start is due",
			events: `Warning UnsupportedSchedule: CRON_TZ or TZ used in schedule "TZ=UTC 0 * * * *" is not officially supported, ` +
				"see https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"},

		"beside another": {c: hourly(last(hour(11)), lists("a")), jobs: []*batchv1.Job{job("a")}, active: "a", start: elevenToNoon, next: "13:00:00.1", why: "a start is due"},
		"not beside another": {c: hourly(last(hour(11)), lists("a"), forbid), jobs: []*batchv1.Job{job("a")}, active: "a", next: "13:00:00.1", why: "1 previous jobs still run: a",
			events: "Normal JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid"},
		"the one before has just ended": {c: hourly(last(hour(11)), lists("a"), forbid), jobs: []*batchv1.Job{job("a", failed)}, start: elevenToNoon, next: "13:00:00.1",
			why: "a start is due", events: completed + "a, condition: Failed"},
		"in place of others": {c: hourly(last(hour(11)), lists("a", "b"), replace), jobs: []*batchv1.Job{job("a"), job("b")}, active: "a, b", start: elevenToNoon, next: "13:00:00.1",
			why: "a start is due and replaces a, b"},
		"in place of none": {c: hourly(last(hour(11)), replace), start: elevenToNoon, next: "13:00:00.1", why: "a start is due"},
		"a job is suspended": {c: hourly(last(hour(11)), lists("a"), forbid), jobs: []*batchv1.Job{job("a", over(batchv1.JobSuspended))}, active: "a", next: "13:00:00.1",
			why: "1 previous jobs still run: a", events: "Normal JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid"},
		"it is on the list already": {c: hourly(last(hour(11)), lists(jobName(hourly(), hour(12)))), live: map[types.UID]bool{types.UID(jobName(hourly(), hour(12))): true},
			active: jobName(hourly(), hour(12)), next: "13:00:00.1", why: "the job of this start exists already: " + jobName(hourly(), hour(12))},

		"a job went missing": {c: hourly(last(hour(12)), lists("a", "b")), jobs: []*batchv1.Job{job("b")}, active: "b", next: "13:00:00.1", why: "no start is due",
			events: "Normal MissingJob: Active job went missing: a"},
		"only the cache misses it": {c: hourly(last(hour(12)), lists("a")), live: map[types.UID]bool{"a": true}, active: "a", next: "13:00:00.1", why: "no start is due"},
		"a stranger runs":          {c: hourly(last(hour(12))), jobs: []*batchv1.Job{job("a")}, next: "13:00:00.1", why: "no start is due", events: unexpected + "a"},
		"a stranger has ended":     {c: hourly(last(hour(12))), jobs: []*batchv1.Job{job("a", failed)}, next: "13:00:00.1", why: "no start is due"},
		"one was forgotten": {c: hourly(last(hour(11)), forbid), jobs: []*batchv1.Job{job("a", made(hour(12)))}, next: "13:00:00.1", why: "no start is due",
			active: jobName(hourly(), hour(12)), events: unexpected + jobName(hourly(), hour(12))},
		"one was forgotten a while ago": {c: hourly(last(hour(9)), forbid), jobs: []*batchv1.Job{job("a", made(hour(10)))}, next: "13:00:00.1", why: "1 previous jobs still run: " + jobName(hourly(), hour(10)),
			active: jobName(hourly(), hour(10)), events: unexpected + jobName(hourly(), hour(10)) + "; Normal JobAlreadyActive: Not starting job because prior execution is running and concurrency policy is Forbid"},
		"one was forgotten and has ended": {c: hourly(last(hour(11))), jobs: []*batchv1.Job{job("a", made(hour(12)), failed)}, next: "13:00:00.1", why: "no start is due"},
		"one claims a time to come": {c: hourly(last(hour(11))), jobs: []*batchv1.Job{job("a", made(hour(13)))}, start: elevenToNoon, next: "13:00:00.1", why: "a start is due",
			events: unexpected + jobName(hourly(), hour(13))},
		"one claims that and has ended": {c: hourly(last(hour(11))), jobs: []*batchv1.Job{job("a", made(hour(13)), failed)}, start: elevenToNoon, next: "13:00:00.1", why: "a start is due"},
		"the status is kept while it is deleted": {c: hourly(beingDeleted, lists("a", "b")), jobs: []*batchv1.Job{job("a"), job("b", failed)}, active: "a", why: "it is being deleted",
			events: completed + "b, condition: Failed"},
		"no history, no word of its end": {c: hourly(last(hour(12)), lists("a"), history(0, 0)), jobs: []*batchv1.Job{job("a", failed)}, next: "13:00:00.1", why: "no start is due"},
	} {
		t.Run(name, func(t *testing.T) {
			p := decide(observed{cron: tc.c, jobs: tc.jobs, live: tc.live}, noon)
			start, next := "", ""
			if p.start != nil {
				start = p.start.at.Format("15:04")
			}
			if !p.next.IsZero() {
				next = p.next.Format("15:04:05.999")
			}
			if start != tc.start || next != tc.next || p.why != tc.why {
				t.Errorf("start %q, next %q, because %q", start, next, p.why)
			}
			if got := reasons(p); got != tc.events {
				t.Errorf("told %s", got)
			}
			if got := activeNames(p.status); got != tc.active {
				t.Errorf("active %s", got)
			}
		})
	}
}

func TestAPlanSaysWhyWithNumbers(t *testing.T) {
	for name, tc := range map[string]struct {
		c         *batchv1.CronJob
		jobs      []*batchv1.Job
		wants     string
		why       string
		requeueAt time.Time
	}{
		"a start": {hourly(last(hour(11))), nil, "create Job " + noonJob, "a start is due: Job " + noonJob + " of 2026-11-21T12:00:00Z", hour(13).Add(afterTime)},
		"in place of another": {hourly(last(hour(11)), lists("a"), replace), []*batchv1.Job{job("a")}, "check Job a",
			"a start is due and replaces a: Job " + noonJob + " of 2026-11-21T12:00:00Z", time.Time{}},
		"between two starts": {hourly(last(hour(12)), lists("a", "b")), []*batchv1.Job{job("a"), job("b")}, "",
			"no start is due; 2 Jobs run, the next look is at 2026-11-21T13:00:00Z", hour(13).Add(afterTime)},
		"never": {hourly(suspended, lists("a")), []*batchv1.Job{job("a")}, "", "it is suspended; 1 Jobs run", time.Time{}},
		"the history": {hourly(last(hour(12))), []*batchv1.Job{job("a", failed), job("b", failed), job("c", failed, leaving), job("d", failed)},
			"delete Job a Background, delete Job b Background", "2 Jobs that have ended are beyond the history limits", time.Time{}},
		"events come first": {hourly(last(hour(11))), []*batchv1.Job{job("a")}, "tell CronJob web; create Job " + noonJob,
			"a start is due: Job " + noonJob + " of 2026-11-21T12:00:00Z", hour(13).Add(afterTime)},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(observed{cron: tc.c, jobs: tc.jobs}, noon)
			if fixture.Planned(p) != tc.wants || p.Why != tc.why || !p.RequeueAt.Equal(tc.requeueAt) {
				t.Errorf("wants %q because %q, again at %s", fixture.Planned(p), p.Why, p.RequeueAt)
			}
		})
	}
}

func TestAPlanSaysWhyNoJobWasMade(t *testing.T) {
	other := "somebody else's Job has the name " + noonJob
	for name, tc := range map[string]struct {
		last act.Result
		why  string
	}{
		"the name is taken":         {act.Result{Became: act.Taken}, other},
		"whose it is is not known":  {act.Result{Became: act.Taken, Err: errors.New("no answer")}, "Job " + noonJob + " could not be made"},
		"the creation went wrong":   {act.Result{Became: act.Refused, Err: errors.New("no answer")}, "Job " + noonJob + " could not be made"},
		"and nobody said what came": {act.Result{Became: act.Refused}, "Job " + noonJob + " could not be made"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan(observed{cron: hourly(last(hour(11)))}, noon).Else(act.Results{tc.last}).Why; got != tc.why {
				t.Errorf("because %q", got)
			}
		})
	}
}

func TestJobsThatNeverStartedAreTheLastToGo(t *testing.T) {
	startedAt := func(h int) jobOption {
		return func(j *batchv1.Job) { j.Status.StartTime = &metav1.Time{Time: hour(h)} }
	}
	jobs := []*batchv1.Job{job("b"), job("c", startedAt(9)), job("a"), job("e", startedAt(8)), job("d", startedAt(9))}
	for i := range jobs {
		for j := range jobs {
			if got, want := byStart(jobs[i], jobs[j]), -byStart(jobs[j], jobs[i]); got != want {
				t.Errorf("%s and %s: %d and %d", jobs[i].Name, jobs[j].Name, got, want)
			}
		}
	}
	slices.SortFunc(jobs, byStart)
	var order string
	for _, j := range jobs {
		order += j.Name
	}
	if order != "ecdab" {
		t.Errorf("the order is %s", order)
	}
}

func TestLastSuccessfulTime(t *testing.T) {
	for name, tc := range map[string]struct {
		c    *batchv1.CronJob
		jobs []*batchv1.Job
		want time.Time
	}{
		"none":                              {hourly(), []*batchv1.Job{job("a"), job("b", failed)}, time.Time{}},
		"the first":                         {hourly(lists("a")), []*batchv1.Job{job("a", complete(time.Minute))}, noon.Add(-time.Minute)},
		"a later one":                       {hourly(succeededAt(hour(9))), []*batchv1.Job{job("a", complete(time.Minute))}, noon.Add(-time.Minute)},
		"an earlier one":                    {hourly(succeededAt(noon)), []*batchv1.Job{job("a", complete(time.Minute))}, noon},
		"the latest of several":             {hourly(), []*batchv1.Job{job("a", complete(3*time.Minute)), job("b", complete(time.Minute)), job("c", complete(2*time.Minute))}, noon.Add(-time.Minute)},
		"one that is beyond the history":    {hourly(history(0, 0)), []*batchv1.Job{job("a", complete(time.Minute))}, noon.Add(-time.Minute)},
		"one that does not say when it was": {hourly(), []*batchv1.Job{job("a", over(batchv1.JobComplete))}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := decide(observed{cron: tc.c, jobs: tc.jobs}, noon)
			var got time.Time
			if p.status.LastSuccessfulTime != nil {
				got = p.status.LastSuccessfulTime.Time
			}
			if !got.Equal(tc.want) {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestSurplus(t *testing.T) {
	three := []*batchv1.Job{job("young", begun(time.Minute), complete(0)), job("old", begun(time.Hour), complete(0)), job("middle", begun(2*time.Minute), complete(0))}
	for name, tc := range map[string]struct {
		c    *batchv1.CronJob
		jobs []*batchv1.Job
		want string
	}{
		"no more than may stay":           {hourly(history(3, 3)), three, ""},
		"the oldest goes":                 {hourly(history(2, 0)), three, "old"},
		"all go, the oldest first":        {hourly(history(0, 0)), three, "old middle young"},
		"no limits":                       {hourly(func(c *batchv1.CronJob) { c.Spec.SuccessfulJobsHistoryLimit, c.Spec.FailedJobsHistoryLimit = nil, nil }), three, ""},
		"one limit":                       {hourly(func(c *batchv1.CronJob) { c.Spec.SuccessfulJobsHistoryLimit = nil }), append(three, job("bad", failed), job("worse", failed)), "bad"},
		"those that run stay":             {hourly(history(0, 0)), []*batchv1.Job{job("a"), job("b", begun(time.Hour))}, ""},
		"failed ones count by themselves": {hourly(history(1, 1)), []*batchv1.Job{job("a", begun(3*time.Hour), failed), job("b", begun(2*time.Hour), complete(0)), job("c", begun(time.Hour), failed)}, "a"},
		"never started is youngest":       {hourly(history(1, 1)), []*batchv1.Job{job("a", failed), job("b", begun(time.Hour), failed)}, "b"},
		"started at once, by name":        {hourly(history(1, 1)), []*batchv1.Job{job("b", begun(time.Hour), failed), job("a", begun(time.Hour), failed)}, "a"},
		"a limit that no server takes":    {hourly(history(-1, -1)), three[:1], "young"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			for _, j := range surplus(tc.c, tc.jobs) {
				if got != "" {
					got += " "
				}
				got += j.Name
			}
			if got != tc.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestPutOff(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after *batchv1.CronJob
		want          time.Duration
	}{
		"made":                           {nil, hourly(), 0},
		"gone":                           {hourly(), nil, 0},
		"something else":                 {hourly(), hourly(suspended), 0},
		"the schedule":                   {hourly(), hourly(schedule("30 * * * *")), 29*time.Minute + 50*time.Second + afterTime},
		"the schedule, a start has come": {hourly(), hourly(schedule("*/5 * * * *")), 4*time.Minute + 50*time.Second + afterTime},
		"the zone":                       {hourly(), hourly(zone("Asia/Kolkata")), 29*time.Minute + 50*time.Second + afterTime},
		"the zone stays the same":        {hourly(zone("Asia/Kolkata")), hourly(zone("Asia/Kolkata")), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := putOff(tc.before, tc.after, noon); got != tc.want || err != nil {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
	if got, _ := putOff(hourly(), hourly(schedule("0 0 31 2 *")), noon); got > 0 {
		t.Errorf("a schedule without times is put off by %s", got)
	}
}

func TestAJobForATime(t *testing.T) {
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	c := hourly(zone("Asia/Tokyo"))
	c.APIVersion, c.Kind = "", "" // as they come from a cache
	j := newJob(c, hour(12), tokyo)
	if j.Name != "web-29921040" || j.Namespace != "ns" || j.GenerateName != "" {
		t.Errorf("called %s/%s", j.Namespace, j.Name)
	}
	if len(j.Labels) != 1 || j.Labels["app"] != "web" || len(j.Annotations) != 2 || j.Annotations["note"] != "x" || len(j.Finalizers) != 0 {
		t.Errorf("labels %v, annotations %v, finalizers %v", j.Labels, j.Annotations, j.Finalizers)
	}
	if got := j.Annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]; got != "2026-11-21T21:00:00+09:00" {
		t.Errorf("scheduled at %s", got)
	}
	if got := newJob(c, hour(12), time.UTC).Annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"]; got != "2026-11-21T12:00:00Z" {
		t.Errorf("scheduled at %s", got)
	}
	owner := j.OwnerReferences[0]
	if len(j.OwnerReferences) != 1 || owner.Kind != "CronJob" || owner.APIVersion != "batch/v1" || owner.UID != "web" || !*owner.Controller || !*owner.BlockOwnerDeletion {
		t.Errorf("owners %v", j.OwnerReferences)
	}
	if *j.Spec.Parallelism != 2 || j.Spec.Parallelism == c.Spec.JobTemplate.Spec.Parallelism {
		t.Error("the spec is not a copy of the template's")
	}
	if at, ours := madeFor(c, j); !ours || !at.Equal(hour(12)) {
		t.Errorf("made for %s, %t", at, ours)
	}
	j.Name = "by-hand"
	if _, ours := madeFor(c, j); ours {
		t.Error("a copy by hand is taken for one of the controller's")
	}
	if c.Spec.JobTemplate.Annotations["batch.kubernetes.io/cronjob-scheduled-timestamp"] != "" {
		t.Error("the template was changed")
	}
}
