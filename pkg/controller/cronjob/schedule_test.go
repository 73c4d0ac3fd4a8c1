package cronjob

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
)

func at(t testing.TB, text string) time.Time {
	t.Helper()
	parsed, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.UTC()
}

func TestStartsIn(t *testing.T) {
	for name, tc := range map[string]struct {
		schedule, earliest, now string
		latest                  string
		missed                  int64
		invalid                 bool
	}{
		"none has come":                        {schedule: "0 * * * *", earliest: "2026-11-21T10:00:00Z", now: "2026-11-21T10:59:59Z"},
		"one has just come":                    {schedule: "0 * * * *", earliest: "2026-11-21T10:00:00Z", now: "2026-11-21T11:00:00Z", latest: "2026-11-21T11:00:00Z"},
		"one has come":                         {schedule: "0 * * * *", earliest: "2026-11-21T10:00:00Z", now: "2026-11-21T11:59:59Z", latest: "2026-11-21T11:00:00Z"},
		"two have come":                        {schedule: "0 * * * *", earliest: "2026-11-21T10:00:00Z", now: "2026-11-21T12:00:00Z", latest: "2026-11-21T12:00:00Z", missed: 2},
		"a hundred have come":                  {schedule: "* * * * *", earliest: "2026-11-21T10:00:00Z", now: "2026-11-21T11:40:30Z", latest: "2026-11-21T11:40:00Z", missed: 100},
		"one more":                             {schedule: "* * * * *", earliest: "2026-11-21T10:00:00Z", now: "2026-11-21T11:41:00Z", latest: "2026-11-21T11:41:00Z", missed: 101},
		"twenty years of minutes":              {schedule: "* * * * *", earliest: "2006-11-21T10:00:00Z", now: "2026-11-21T10:00:30Z", latest: "2026-11-21T10:00:00Z", missed: 10519200},
		"a thousand years of minutes":          {schedule: "* * * * *", earliest: "1026-11-21T10:00:00Z", now: "2026-11-21T10:00:30Z", latest: "2026-11-21T10:00:00Z", missed: 525949920},
		"the earliest is to come":              {schedule: "* * * * *", earliest: "2027-11-21T10:00:00Z", now: "2026-11-21T10:00:30Z"},
		"each year":                            {schedule: "0 0 1 1 *", earliest: "2019-06-01T00:00:00Z", now: "2026-11-21T10:00:00Z", latest: "2026-01-01T00:00:00Z", missed: 7},
		"a day that no month has":              {schedule: "59 23 31 2 *", earliest: "2026-11-21T10:00:00Z", now: "2026-11-21T10:00:30Z", invalid: true},
		"working hours, and it is the weekend": {schedule: "30 6-16/4 * * 1-5", earliest: "2026-11-18T06:30:00Z", now: "2026-11-21T12:00:00Z", missed: 19},
		"two in a row and then a long pause":   {schedule: "0,1 0 1 1 *", earliest: "2025-06-01T00:00:00Z", now: "2026-11-21T12:00:00Z", missed: 467281},
		"every so often, from the earliest on": {schedule: "@every 90s", earliest: "2026-11-21T10:00:05Z", now: "2026-11-21T10:10:00Z", latest: "2026-11-21T10:09:05Z", missed: 6},
		"every second for years":               {schedule: "@every 1s", earliest: "2006-11-21T10:00:00Z", now: "2026-11-21T10:00:00Z", latest: "2026-11-21T10:00:00Z", missed: 631152000},
		"less than a second is a second":       {schedule: "@every 1ns", earliest: "2026-11-21T10:00:00Z", now: "2026-11-21T10:00:01Z", latest: "2026-11-21T10:00:01Z"},
		"longer than anybody lives":            {schedule: "@every 2562047h", earliest: "2026-11-21T10:00:00Z", now: "2026-11-21T10:00:01Z"},
		"leap days":                            {schedule: "0 0 29 2 *", earliest: "2015-01-01T00:00:00Z", now: "2026-11-21T00:00:00Z", latest: "2024-02-29T00:00:00Z", missed: 3},
		"a leap day that is eight years away":  {schedule: "0 0 29 2 *", earliest: "2096-03-01T00:00:00Z", now: "2026-11-21T00:00:00Z", invalid: true},
		"an hour that comes twice, long ago":   {schedule: "TZ=Europe/Berlin 30 2 * * *", earliest: "2026-10-24T12:00:00Z", now: "2026-10-25T12:00:00Z", missed: 12},
		"an hour that is left out":             {schedule: "TZ=Europe/Berlin 30 2 * * *", earliest: "2026-03-28T12:00:00Z", now: "2026-03-30T12:00:00Z", latest: "2026-03-30T00:30:00Z"},
		"half an hour from everybody else":     {schedule: "TZ=Asia/Kolkata 0 0 * * *", earliest: "2026-11-20T12:00:00Z", now: "2026-11-21T12:00:00Z", latest: "2026-11-20T18:30:00Z"},
		"all the minutes of most of the year":  {schedule: "* * * 1-11 *", earliest: "2025-11-30T23:58:30Z", now: "2026-01-30T00:00:30Z", latest: "2026-01-30T00:00:00Z", missed: 2},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := parse(&batchv1.CronJobSpec{Schedule: tc.schedule})
			if err != nil {
				t.Fatal(err)
			}
			found, err := startsIn(parsed, at(t, tc.earliest), at(t, tc.now))
			if (err != nil) != tc.invalid {
				t.Fatalf("error %v", err)
			}
			latest := ""
			if !found.latest.IsZero() {
				latest = found.latest.Format(time.RFC3339)
			}
			if latest != tc.latest || found.missed != tc.missed {
				t.Errorf("got %s and %d missed", latest, found.missed)
			}
		})
	}
}

func TestNextLook(t *testing.T) {
	for name, tc := range map[string]struct{ schedule, earliest, now, want string }{
		"none has come":                     {"0 * * * *", "2026-11-21T10:30:00Z", "2026-11-21T10:45:00Z", "2026-11-21T11:00:00.1Z"},
		"one has come":                      {"0 * * * *", "2026-11-21T10:30:00Z", "2026-11-21T11:45:00Z", "2026-11-21T12:00:00.1Z"},
		"several have come":                 {"0 * * * *", "2026-11-21T05:30:00Z", "2026-11-21T11:45:00Z", "2026-11-21T12:00:00.1Z"},
		"some have come, none is found":     {"0,1 0 1 1 *", "2025-06-01T00:00:00Z", "2026-11-21T12:00:00Z", "2027-01-01T00:00:00.1Z"},
		"every so often, from the earliest": {"@every 1h", "2026-11-21T10:30:05Z", "2026-11-21T10:45:00Z", "2026-11-21T11:30:05.1Z"},
		"every so often, from the last":     {"@every 1h", "2026-11-21T05:30:05Z", "2026-11-21T10:45:00Z", "2026-11-21T11:30:05.1Z"},
		"there is none":                     {"0 0 31 2 *", "2026-11-21T05:30:05Z", "2026-11-21T10:45:00Z", ""},
		"the last start was made too early": {"0 * * * *", "2026-11-21T13:00:00Z", "2026-11-21T10:45:00Z", "2026-11-21T14:00:00.1Z"},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := parse(&batchv1.CronJobSpec{Schedule: tc.schedule})
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if next := nextLook(parsed, at(t, tc.earliest), at(t, tc.now)); !next.IsZero() {
				got = next.Format(time.RFC3339Nano)
			}
			if got != tc.want {
				t.Errorf("got %q", got)
			}
		})
	}
}

// counted is a schedule that counts how often it is asked.
type counted struct {
	cron.Schedule
	asked *int
}

func (c counted) Next(t time.Time) time.Time {
	*c.asked++
	return c.Schedule.Next(t)
}

// TestSearchesAreBounded compares what is found with a walk from the first time to
// the last, and holds how often the schedule is asked for it.
func TestSearchesAreBounded(t *testing.T) {
	for name, tc := range map[string]struct {
		schedule, earliest, now string
		most                    int
	}{
		"none has come":                       {"0 * * * *", "2026-11-21T10:00:00Z", "2026-11-21T10:59:59Z", 1},
		"one has come":                        {"0 * * * *", "2026-11-21T10:00:00Z", "2026-11-21T11:59:59Z", 2},
		"a thousand have come":                {"* * * * *", "2026-11-20T10:00:00Z", "2026-11-21T11:40:00Z", 6},
		"a day that no month has":             {"0 0 30 2 *", "2026-11-21T10:00:00Z", "2026-11-21T11:40:00Z", 1},
		"the same, in a distant year":         {"0 0 30 2 *", "1000-11-21T10:00:00Z", "9026-11-21T11:40:00Z", 1},
		"half of the year, in its pause":      {"* * * 1-6 *", "2025-06-30T23:58:30Z", "2026-12-31T12:00:00Z", 3000},
		"half of the year, in the other half": {"* * * 1-6 *", "2024-06-30T23:58:30Z", "2026-05-31T12:00:00Z", 3000},
		"the same, where clocks change":       {"TZ=America/Sao_Paulo * * * 1-6 *", "2015-07-01T02:58:30Z", "2018-05-31T12:00:00Z", 3000},
		"a month, far from the first":         {"* * * 12 *", "2016-12-31T23:58:30Z", "2026-11-30T12:00:00Z", 3000},
		"working hours":                       {"* 9-17 * * 1-5", "2026-01-02T17:58:30Z", "2026-11-21T11:40:00Z", 3000},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := parse(&batchv1.CronJobSpec{Schedule: tc.schedule})
			if err != nil {
				t.Fatal(err)
			}
			asked, now := 0, at(t, tc.now)
			found, err := startsIn(counted{parsed, &asked}, at(t, tc.earliest), now)
			if asked > tc.most {
				t.Errorf("asked %d times", asked)
			}
			if err != nil {
				return
			}
			latest, next := walk(parsed, at(t, tc.earliest), now)
			if !found.latest.Equal(latest) || !found.next.Equal(next) {
				t.Errorf("found %s and %s, not %s and %s", found.latest, found.next, latest, next)
			}
		})
	}
}

// walk finds the last start until now, and the next, start by start: from ever
// longer ago, until there is one.
func walk(s cron.Schedule, earliest, now time.Time) (latest, next time.Time) {
	for ago := time.Hour; ; ago *= 2 {
		from := now.Add(-ago)
		if from.Before(earliest) {
			from = earliest
		}
		for next = s.Next(from); !next.After(now); {
			latest, next = next, s.Next(next)
		}
		if !latest.IsZero() || from.Equal(earliest) {
			return latest, next
		}
	}
}

func TestParse(t *testing.T) {
	for name, tc := range map[string]struct {
		spec  *batchv1.CronJob
		next  string
		wrong string
	}{
		"in the zone":                        {spec: hourly(schedule("0 0 * * *"), zone("Asia/Tokyo")), next: "2026-11-21T15:00:00Z"},
		"a zone in the schedule comes first": {spec: hourly(schedule("TZ=UTC 0 0 * * *"), zone("Asia/Tokyo")), next: "2026-11-22T00:00:00Z"},
		"a zone that does not exist":         {spec: hourly(schedule("0 0 * * *"), zone("Mars/Phobos")), next: "2026-11-22T00:00:00Z"},
		"a path is no zone":                  {spec: hourly(schedule("0 0 * * *"), zone("../../etc/passwd")), next: "2026-11-22T00:00:00Z"},
		"a name for a schedule":              {spec: hourly(schedule("@weekly"), zone("Asia/Tokyo")), next: "2026-11-21T15:00:00Z"},
		"zones do not change intervals":      {spec: hourly(schedule("@every 1h"), zone("Asia/Tokyo")), next: "2026-11-21T13:00:10Z"},
		"too few fields":                     {spec: hourly(schedule("* *")), wrong: "expected exactly 5 fields"},
		"empty":                              {spec: hourly(schedule("")), wrong: "empty spec string"},
		"only a zone":                        {spec: hourly(schedule("TZ=UTC")), wrong: "nothing else"},
		"only a zone, in other words":        {spec: hourly(schedule("CRON_TZ=")), wrong: "nothing else"},
		"a zone inside that is none":         {spec: hourly(schedule("TZ=Mars/Phobos * * * * *")), wrong: "bad location"},
		"a minute too many":                  {spec: hourly(schedule("60 * * * *")), wrong: "above maximum"},
		"no steps":                           {spec: hourly(schedule("*/0 * * * *")), wrong: "should be a positive number"},
		"a step that is very long":           {spec: hourly(schedule("0/9223372036854775807 * * * *")), next: "2026-11-21T13:00:00Z"},
		"a number that is too long":          {spec: hourly(schedule("99999999999999999999 * * * *")), wrong: "failed to parse int"},
		"seconds":                            {spec: hourly(schedule("0 0 * * * *")), wrong: "expected exactly 5 fields"},
	} {
		t.Run(name, func(t *testing.T) {
			parsed, err := parse(&tc.spec.Spec)
			if tc.wrong != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wrong) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := parsed.Next(noon).Format(time.RFC3339); got != tc.next {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestDeadlines(t *testing.T) {
	for name, tc := range map[string]struct {
		c    *batchv1.CronJob
		from time.Time
		late bool
	}{
		"none":                       {hourly(), hour(9), false},
		"longer ago than the latest": {hourly(deadline(24 * 3600)), hour(9), false},
		"shorter ago":                {hourly(deadline(3600)), noon.Add(-time.Hour), true},
		"at once":                    {hourly(deadline(0)), noon, true},
		"twice as long and a bit":    {hourly(deadline(18446744074)), hour(9), false},
		"longer than can be said":    {hourly(deadline(math.MaxInt64)), hour(9), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := withinDeadline(tc.c, hour(9), noon); !got.Equal(tc.from) {
				t.Errorf("from %s", got)
			}
			if got := tooLate(tc.c, hour(10), noon); got != tc.late {
				t.Errorf("late %t", got)
			}
		})
	}
}

func TestAnUnknownZoneStaysUnknown(t *testing.T) {
	spec := hourly(zone("Mars/Deimos")).Spec
	for range 2 {
		if found, err := zoneOf(&spec); err == nil {
			t.Errorf("found %v", found)
		}
	}
}

// FuzzSchedule looks for schedules and times on which the controller panics,
// looks for ever, or starts what has not come.
func FuzzSchedule(f *testing.F) {
	for _, text := range []string{"* * * * *", "0 0 29 2 *", "59 23 31 2 *", "@every 1h", "@hourly", "TZ=UTC", "CRON_TZ=Asia/Tokyo 0 0 * * *",
		"30 6-16/4 * * 1-5", "* * * 1 *", "* * * 1-6 *", "0 0 30 2 *", "*/7,3-9/2 * ? jan-dec sun", "0/9223372036854775807 * * * *"} {
		f.Add(text, "Europe/Berlin", int64(1_700_000_000), int64(1_800_000_000), int64(-1))
	}
	f.Add("* * * * *", "", int64(-62135596800), int64(253402300799), int64(math.MaxInt64))
	f.Fuzz(func(t *testing.T, text, zoneName string, earliest, now, limit int64) {
		// What the API can say is between the years 1 and 9999.
		const least, most = -62135596800, 253402300799
		if earliest < least || earliest > most || now < least || now > most {
			return
		}
		c := hourly(schedule(text), last(time.Unix(earliest, 0).UTC()))
		if zoneName != "" {
			c.Spec.TimeZone = &zoneName
		}
		if limit >= 0 {
			c.Spec.StartingDeadlineSeconds = &limit
		}
		moment := time.Unix(now, 5).UTC()
		p := decide(observed{cron: c}, moment)
		if p.start != nil && (p.start.at.After(moment) || p.start.at.Unix() <= earliest) {
			t.Errorf("starts at %s", p.start.at)
		}
		if !p.next.IsZero() && !p.next.After(moment) {
			t.Errorf("looks again at %s", p.next)
		}
	})
}

func TestAnErrorOfAnEmptyZoneIsKnown(t *testing.T) {
	if _, err := parse(&batchv1.CronJobSpec{Schedule: "TZ="}); !errors.Is(err, errZoneOnly) {
		t.Errorf("got %v", err)
	}
}
