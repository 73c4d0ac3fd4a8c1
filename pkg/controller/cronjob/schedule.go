package cronjob

import (
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/seconds"
)

const (
	// afterTime is how long after a time of the schedule it is looked at, because
	// clocks are never quite the same.
	afterTime = 100 * time.Millisecond
	// manyMissed is how many times may have been missed before an event says so.
	manyMissed = 100
	// manySteps is how many times of a schedule are looked at one after the other.
	manySteps = 1000
	aDay      = 24 * time.Hour
)

var (
	errNoInterval = errors.New("time difference between two schedules is less than 1 second")
	errZoneOnly   = errors.New("the schedule has a time zone and nothing else")
)

// zones are the time zones that were asked for and exist.
var zones sync.Map

// zoneOf is the time zone of the CronJob; nil when it names none.
func zoneOf(spec *batchv1.CronJobSpec) (*time.Location, error) {
	if spec.TimeZone == nil {
		return nil, nil
	}
	if known, ok := zones.Load(*spec.TimeZone); ok {
		return known.(*time.Location), nil
	}
	zone, err := time.LoadLocation(*spec.TimeZone)
	if err == nil {
		zones.Store(*spec.TimeZone, zone)
	}
	return zone, err
}

// parse reads the schedule, in its zone unless it names another one itself. In a
// zone that does not exist it is read as if there were none.
func parse(spec *batchv1.CronJobSpec) (cron.Schedule, error) {
	text := spec.Schedule
	// The library takes for granted that something follows the zone.
	if (strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=")) && !strings.Contains(text, " ") {
		return nil, errZoneOnly
	}
	schedule, err := cron.ParseStandard(text)
	if err != nil {
		return nil, err
	}
	if zone, err := zoneOf(spec); zone != nil && err == nil && !zoneInside(text) {
		if fields, ok := schedule.(*cron.SpecSchedule); ok {
			fields.Location = zone
		}
	}
	return schedule, nil
}

// zoneInside reports whether the schedule names a time zone itself, in a way that
// was never supported and is no longer admitted.
func zoneInside(schedule string) bool { return strings.Contains(schedule, "TZ") }

// starts is what a schedule has come to between two times.
type starts struct {
	// latest is the last time that has come, zero when none has.
	latest time.Time
	// missed is about how many have come before and been left out.
	missed int64
	// next is the first that is to come, zero when there is none for years.
	next time.Time
}

// startsIn looks for the times of a schedule after earliest and not after now. It
// does not look at each of them, because there may be millions: their number is
// estimated from the first two, and the last of them is looked for from shortly
// before the time that the estimate names. A schedule that has long pauses may
// have none there.
func startsIn(schedule cron.Schedule, earliest, now time.Time) (starts, error) {
	first := schedule.Next(earliest)
	if first.IsZero() {
		return starts{}, errNoInterval
	}
	if now.Before(first) {
		return starts{next: first}, nil
	}
	second := schedule.Next(first)
	if now.Before(second) {
		return starts{latest: first, next: second}, nil
	}
	apart := int64(second.Sub(first) / time.Second)
	if apart < 1 {
		return starts{}, errNoInterval
	}
	found := starts{missed: (now.Unix()-first.Unix())/apart + 1}
	from := time.Unix(first.Unix()+(found.missed-2)*apart, 0).In(first.Location())
	found.latest, found.next = around(schedule, from, now)
	if found.latest.IsZero() {
		found.next = schedule.Next(now)
	}
	return found, nil
}

// around goes from time to time up to the last that is not after now, and returns
// that and the next. Of a schedule with pauses there may be hundreds of thousands
// on the way: when it has seen many, it looks nearer to now for the place to go
// on from.
func around(schedule cron.Schedule, from, now time.Time) (latest, next time.Time) {
	next = schedule.Next(from)
	for seen := 0; !next.IsZero() && !next.After(now); seen++ {
		if seen == manySteps {
			next = near(schedule, next, now)
		}
		latest, next = next, schedule.Next(next)
	}
	return latest, next
}

// near returns a time of the schedule that is not before t and at most about a day
// before the last that is not after now. Only times of the calendar can be found
// from anywhere; intervals go on from where they began, and are never that many.
func near(schedule cron.Schedule, t, now time.Time) time.Time {
	if _, interval := schedule.(cron.ConstantDelaySchedule); interval {
		return t
	}
	// The last time is after t, or t itself, and not after end.
	for end := now; end.Sub(t) > aDay; {
		middle := t.Add(end.Sub(t) / 2)
		if next := schedule.Next(middle); next.IsZero() || next.After(now) {
			end = middle
		} else {
			t = next
		}
	}
	return t
}

// nextLook is when the CronJob wants to be looked at again, after its times between
// earliest and now; zero is never.
func nextLook(schedule cron.Schedule, earliest, now time.Time) time.Time {
	found, err := startsIn(schedule, earliest, now)
	if err != nil {
		found.next = schedule.Next(now)
	}
	return shortlyAfter(found.next)
}

func shortlyAfter(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.Add(afterTime)
}

// since is the time from which on starts are owed: the latest start, or else the
// creation of the CronJob.
func since(c *batchv1.CronJob, last *time.Time) time.Time {
	if last != nil {
		return *last
	}
	return c.CreationTimestamp.Time
}

// withinDeadline moves the time up to which starts are owed.
func withinDeadline(c *batchv1.CronJob, earliest, now time.Time) time.Time {
	if c.Spec.StartingDeadlineSeconds == nil {
		return earliest
	}
	if limit := now.Add(-seconds.Of(*c.Spec.StartingDeadlineSeconds)); limit.After(earliest) {
		return limit
	}
	return earliest
}

// tooLate reports whether a start may not be made up for any more.
func tooLate(c *batchv1.CronJob, at, now time.Time) bool {
	return c.Spec.StartingDeadlineSeconds != nil && at.Add(seconds.Of(*c.Spec.StartingDeadlineSeconds)).Before(now)
}
