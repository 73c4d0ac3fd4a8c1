package job

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// written is a status as a test reads it.
func written(s batchv1.JobStatus) string {
	parts := []string{fmt.Sprintf("%d active %d ready %d terminating, %d succeeded %d failed", s.Active, ptr.Deref(s.Ready, -1), ptr.Deref(s.Terminating, -1), s.Succeeded, s.Failed)}
	if u := s.UncountedTerminatedPods; len(u.Succeeded)+len(u.Failed) > 0 {
		parts = append(parts, fmt.Sprintf("noted %v%v", u.Succeeded, u.Failed))
	}
	if s.CompletedIndexes != "" {
		parts = append(parts, "indexes "+s.CompletedIndexes)
	}
	if s.FailedIndexes != nil {
		parts = append(parts, "failed indexes "+*s.FailedIndexes)
	}
	for _, c := range s.Conditions {
		if c.Status == corev1.ConditionTrue {
			parts = append(parts, string(c.Type))
		}
	}
	return strings.Join(parts, "; ")
}

// freed is what becomes of the finalizers that a tally takes off, when those of the
// first pods go and the others stay.
func freed(t *tally, first int) act.Results {
	results := make(act.Results, len(t.release))
	for i := range results {
		if results[i].Became = act.Refused; i < first {
			results[i].Became = act.Done
		}
	}
	return results
}

func TestCounting(t *testing.T) {
	enough := &conclusion{true, batchv1.JobReasonCompletionsReached, messageCompletions}
	lost := &conclusion{false, batchv1.JobReasonBackoffLimitExceeded, messageBackoffLimit}
	active := func(n int32) jobOption { return func(j *batchv1.Job) { j.Status.Active = n } }
	ending := func(n int32) jobOption { return func(j *batchv1.Job) { j.Status.Terminating = &n } }
	for name, tc := range map[string]struct {
		job           *batchv1.Job
		pods          []*corev1.Pod
		did           carried
		first, second string // "" if there is nothing to write
		release       int
		ends          bool
	}{
		"nothing has changed": {job: newJob(2, active(2), func(j *batchv1.Job) { j.Status.Ready = ptr.To(int32(2)) }), pods: some(2)},
		"a start time alone is not written": {job: newJob(2, leaving, func(j *batchv1.Job) {
			j.Status.StartTime, j.Status.Ready, j.Status.Terminating = nil, ptr.To(int32(0)), ptr.To(int32(0))
		})},
		"the first pods": {job: newJob(2, fresh), did: carried{created: 2}, first: "2 active 0 ready 0 terminating, 0 succeeded 0 failed"},
		"a success is noted, then counted": {job: newJob(2, active(2)), pods: []*corev1.Pod{newPodOf("a", success), newPodOf("b")}, release: 1,
			first:  "1 active 1 ready 0 terminating, 0 succeeded 0 failed; noted [a][]",
			second: "1 active 1 ready 0 terminating, 1 succeeded 0 failed"},
		"a failure is noted, then counted": {job: newJob(2, active(2)), pods: []*corev1.Pod{newPodOf("a", broken), newPodOf("b")}, did: carried{created: 1}, release: 1,
			first:  "2 active 1 ready 0 terminating, 0 succeeded 0 failed; noted [][a]",
			second: "2 active 1 ready 0 terminating, 0 succeeded 1 failed"},
		"the end is announced with the last note": {job: newJob(2, active(1), counted(1, 0)), pods: some(1, success), did: carried{conclusion: enough}, release: 1, ends: true,
			first:  "0 active 0 ready 0 terminating, 1 succeeded 0 failed; noted [p0][]; SuccessCriteriaMet",
			second: "0 active 0 ready 0 terminating, 2 succeeded 0 failed; SuccessCriteriaMet; Complete"},
		"what runs of a Job that fails fails": {job: newJob(2, active(2)), pods: []*corev1.Pod{newPodOf("a", broken), newPodOf("b")}, did: carried{deleted: 1, deletedReady: 1, conclusion: lost}, release: 2,
			first:  "0 active 0 ready 1 terminating, 0 succeeded 0 failed; noted [][a b]; FailureTarget",
			second: "0 active 0 ready 1 terminating, 0 succeeded 2 failed; FailureTarget"},
		"the end waits for the last pod": {job: newJob(2, counted(0, 2), announced(batchv1.JobFailureTarget, lost.reason, lost.message), func(j *batchv1.Job) { j.Status.Terminating = ptr.To(int32(1)) }),
			pods: some(1, goingAway, untracked), did: carried{conclusion: lost}},
		"and comes when it is gone": {job: newJob(2, counted(0, 2), announced(batchv1.JobFailureTarget, lost.reason, lost.message), func(j *batchv1.Job) { j.Status.Terminating = ptr.To(int32(1)) }),
			did: carried{conclusion: lost}, ends: true,
			first:  "0 active 0 ready 0 terminating, 0 succeeded 2 failed; FailureTarget",
			second: "0 active 0 ready 0 terminating, 0 succeeded 2 failed; FailureTarget; Failed"},
		"what runs of a Job that succeeds is not counted": {job: newJob(2, successRules(), active(2)), pods: []*corev1.Pod{newPodOf("a", success, index(0)), newPodOf("b", index(1))},
			did: carried{deleted: 1, deletedReady: 1, conclusion: &conclusion{true, "SuccessPolicy", "m"}}, release: 2,
			first: "0 active 0 ready 1 terminating, 1 succeeded 0 failed; indexes 0; SuccessCriteriaMet"},
		"a note of before is counted when its finalizer is off": {job: newJob(3, noted([]types.UID{"a"}, []types.UID{"b", "c"})), pods: []*corev1.Pod{newPodOf("b", broken), newPodOf("c", broken, untracked)}, release: 1,
			first:  "0 active 0 ready 0 terminating, 1 succeeded 1 failed; noted [][b]",
			second: "0 active 0 ready 0 terminating, 1 succeeded 2 failed"},
		"a note is not made twice": {job: newJob(3, noted([]types.UID{"p0"}, nil)), pods: some(1, success), release: 1,
			second: "0 active 0 ready 0 terminating, 1 succeeded 0 failed"},
		"an index is counted once": {job: newJob(3, indexedMode, doneIndexes("1")), pods: []*corev1.Pod{newPodOf("a", success, index(1)), newPodOf("b", success, index(2)), newPodOf("c", success, index(2))}, release: 3,
			first: "0 active 0 ready 0 terminating, 2 succeeded 0 failed; indexes 1,2"},
		"an index whose pod was noted as failed, and succeeded": {job: newJob(1, indexedMode, noted(nil, []types.UID{"a"})), pods: []*corev1.Pod{newPodOf("a", success, index(0))}, did: carried{conclusion: enough}, release: 1, ends: true,
			first:  "0 active 0 ready 0 terminating, 1 succeeded 0 failed; noted [][a]; indexes 0; SuccessCriteriaMet",
			second: "0 active 0 ready 0 terminating, 1 succeeded 1 failed; indexes 0; SuccessCriteriaMet; Complete"},
		"an index beyond the last is not counted":               {job: newJob(2, indexedMode), pods: []*corev1.Pod{newPodOf("a", success, index(2)), newPodOf("b", broken, index(3))}, release: 2},
		"fewer completions":                                     {job: newJob(2, indexedMode, doneIndexes("0-4")), first: "0 active 0 ready 0 terminating, 2 succeeded 0 failed; indexes 0,1"},
		"fewer completions than have succeeded, and fewer pods": {job: newJob(2, indexedMode, doneIndexes("0-4"), counted(5, 0), func(j *batchv1.Job) { j.Spec.Parallelism = ptr.To[int32](1) }), first: "0 active 0 ready 0 terminating, 5 succeeded 0 failed; indexes 0,1"},
		"a failure that is ignored is not counted":              {job: newJob(2, rules(exit(ignore, in, 42))), pods: some(1, failedWith(42)), release: 1},
		"per index: the last failure stays until it is replaced": {job: newJob(2, limitPerIndex(3)), pods: some(1, broken, index(0), failures(0, 0)), did: carried{created: 1},
			first: "1 active 0 ready 0 terminating, 0 succeeded 0 failed; failed indexes "},
		"per index: and goes when it is": {job: newJob(2, limitPerIndex(3), func(j *batchv1.Job) { j.Status.FailedIndexes = ptr.To("") }), pods: []*corev1.Pod{newPodOf("a", broken, index(0), failures(0, 0)), newPodOf("b", index(0), failures(1, 0))}, release: 1,
			first:  "1 active 1 ready 0 terminating, 0 succeeded 0 failed; noted [][a]; failed indexes ",
			second: "1 active 1 ready 0 terminating, 0 succeeded 1 failed; failed indexes "},
		"per index: a failed index is told": {job: newJob(3, limitPerIndex(0)), pods: some(1, broken, index(1), failures(0, 0)), release: 1,
			first:  "0 active 0 ready 0 terminating, 0 succeeded 0 failed; noted [][p0]; failed indexes 1",
			second: "0 active 0 ready 0 terminating, 0 succeeded 1 failed; failed indexes 1"},
		"per index: what the end took away fails no index": {job: newJob(3, limitPerIndex(0), maxFailed(0), counted(0, 2), givenIndexes("0"), announced(batchv1.JobFailureTarget, "R", "m"), ending(1)),
			pods: []*corev1.Pod{newPodOf("b", index(1), failures(0, 0), goingAway, untracked)}, did: carried{conclusion: &conclusion{false, "R", "m"}}},
		"per index: nor does it before it has been counted": {job: newJob(3, limitPerIndex(0), maxFailed(0), counted(0, 1), givenIndexes("0"), noted(nil, []types.UID{"b"}), announced(batchv1.JobFailureTarget, "R", "m"), ending(1)),
			pods: []*corev1.Pod{newPodOf("b", index(1), failures(0, 0), goingAway)}, did: carried{conclusion: &conclusion{false, "R", "m"}}, release: 1,
			second: "0 active 0 ready 1 terminating, 0 succeeded 2 failed; failed indexes 0; FailureTarget"},
		"per index: an index that has succeeded does not fail any more": {job: newJob(2, limitPerIndex(1), doneIndexes("0"), counted(1, 0), active(1), func(j *batchv1.Job) { j.Status.FailedIndexes = ptr.To("") }),
			pods: []*corev1.Pod{newPodOf("b", broken, index(0), failures(1, 0))}, release: 1,
			first:  "0 active 0 ready 0 terminating, 1 succeeded 0 failed; noted [][b]; indexes 0; failed indexes ",
			second: "0 active 0 ready 0 terminating, 1 succeeded 1 failed; indexes 0; failed indexes "},
		"per index: an index that was given up does not succeed any more": {job: newJob(2, limitPerIndex(0), givenIndexes("0"), counted(0, 1), active(1)),
			pods: []*corev1.Pod{newPodOf("b", success, index(0))}, release: 1,
			first: "0 active 0 ready 0 terminating, 0 succeeded 1 failed; failed indexes 0"},
		"a Job that is deleted lets go of all": {job: newJob(3, leaving, active(2)), pods: []*corev1.Pod{newPodOf("a", success), newPodOf("b")}, release: 2,
			first:  "1 active 1 ready 0 terminating, 0 succeeded 0 failed; noted [a][]",
			second: "1 active 1 ready 0 terminating, 1 succeeded 0 failed"},
		"pods on their way out": {job: newJob(2, replaceFailed, active(2)), pods: some(2, goingAway),
			first: "0 active 0 ready 2 terminating, 0 succeeded 0 failed"},
	} {
		t.Run(name, func(t *testing.T) {
			tally := begin(look(tc.job, tc.pods, streak{}, noon), tc.did)
			first, second := "", ""
			if tally.changed {
				first = written(tally.status)
			}
			next, whole := tally.counted(freed(tally, len(tally.release)))
			check(t, whole, true)
			ends := next.conclude(noon)
			if next.changed || ends {
				second = written(next.status)
			}
			check(t, first, tc.first)
			check(t, second, tc.second)
			check(t, len(tally.release), tc.release)
			check(t, ends, tc.ends)
		})
	}
}

func TestAPodWhoseFinalizerStaysIsNotCounted(t *testing.T) {
	for want, tc := range map[string]struct {
		ended podOption
		ends  conclusion
	}{
		"0 active 0 ready 0 terminating, 1 succeeded 0 failed; noted [p1][]; SuccessCriteriaMet": {success, conclusion{success: true}},
		"0 active 0 ready 0 terminating, 0 succeeded 1 failed; noted [][p1]; FailureTarget":      {broken, conclusion{success: false}},
	} {
		tally := begin(look(newJob(2), some(2, tc.ended), streak{}, noon), carried{conclusion: &tc.ends})
		next, whole := tally.counted(freed(tally, 1))
		check(t, whole, false)
		check(t, next.conclude(noon), false)
		check(t, written(next.status), want)
	}
}

func TestOneRoundCountsFiveHundred(t *testing.T) {
	for name, tc := range map[string]struct {
		job        *batchv1.Job
		ended      podOption
		says, then int32
	}{
		"by pod":      {newJob(1200), success, 500, 500},
		"by index":    {newJob(1200, indexedMode), success, 1200, 700},
		"failed pods": {newJob(1200), broken, 500, 500},
	} {
		t.Run(name, func(t *testing.T) {
			all := some(1200, tc.ended)
			for i, p := range all {
				index(i)(p)
			}
			tally := begin(look(tc.job, all, streak{}, noon), carried{conclusion: &conclusion{success: true}})
			check(t, len(tally.release), 500)
			next, _ := tally.counted(freed(tally, 500))
			check(t, next.status.Succeeded+next.status.Failed, tc.says)
			check(t, next.conclude(noon), false)
			// What is reported has no UID in the status, so the rest needs no more rounds.
			tc.job.Status = next.status
			rest := begin(look(tc.job, all[500:], streak{}, noon), carried{conclusion: &conclusion{success: true}})
			check(t, len(rest.release), int(tc.then))
		})
	}
}

func TestAConditionChangesWithAllThatItSays(t *testing.T) {
	is := func(status corev1.ConditionStatus, reason, message string) batchv1.JobCondition {
		return condition(batchv1.JobSuspended, status, reason, message, noon)
	}
	for name, tc := range map[string]struct {
		now  batchv1.JobCondition
		news bool
	}{
		"nothing":     {is(corev1.ConditionTrue, "R", "m"), false},
		"its status":  {is(corev1.ConditionFalse, "R", "m"), true},
		"its reason":  {is(corev1.ConditionTrue, "other", "m"), true},
		"its message": {is(corev1.ConditionTrue, "R", "other"), true},
	} {
		t.Run(name, func(t *testing.T) {
			got, news := withCondition([]batchv1.JobCondition{is(corev1.ConditionTrue, "R", "m")}, tc.now)
			check(t, news, tc.news)
			check(t, len(got), 1)
			check(t, got[0], tc.now)
		})
	}
}

// Taking hundreds of finalizers off takes seconds, and others count from the end.
func TestAJobIsCompleteBeforeItEnds(t *testing.T) {
	j := newJob(1, counted(1, 0))
	done := carried{at: noon.Add(time.Second), conclusion: &conclusion{true, batchv1.JobReasonCompletionsReached, messageCompletions}}
	tally := begin(look(j, nil, streak{}, noon), done)
	check(t, tally.conclude(noon.Add(25*time.Second)), true)
	check(t, tally.status.CompletionTime.Time, noon)
	check(t, conditionOf(&batchv1.Job{Status: tally.status}, batchv1.JobComplete).LastTransitionTime.Time, noon.Add(25*time.Second))
	resumed := begin(look(newJob(1, func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{condition(batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended", noon.Add(-time.Hour))}
	}), nil, streak{}, noon), carried{at: noon.Add(13 * time.Second)})
	check(t, resumed.status.StartTime.Time, noon.Add(13*time.Second))
}

// The API server refuses the end of a Job before its start.
func TestTheEndIsNotBeforeTheStart(t *testing.T) {
	started := metav1.NewTime(noon.Add(time.Hour))
	j := newJob(1, counted(1, 0), func(j *batchv1.Job) { j.Status.StartTime = &started })
	tally := begin(look(j, nil, streak{}, noon), carried{conclusion: &conclusion{true, batchv1.JobReasonCompletionsReached, messageCompletions}})
	check(t, tally.conclude(noon), true)
	check(t, tally.status.CompletionTime.Time, started.Time)
}

// The API server refuses the end of a Job that has not started.
func TestWhatEndsHasAStart(t *testing.T) {
	started, neverRan := noon.Add(-time.Hour), func(j *batchv1.Job) { j.Status.StartTime, j.Spec.Completions = nil, ptr.To(int32(0)) }
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		want *time.Time
	}{
		"that of its start": {newJob(1, func(j *batchv1.Job) { j.Status.StartTime = ptr.To(metav1.NewTime(started)) }), &started},
		"that of its end, when it was suspended meanwhile": {newJob(1, suspend, func(j *batchv1.Job) { j.Status.StartTime = nil }), &noon},
		"none without anything to run":                     {newJob(1, suspend, neverRan), nil},
	} {
		t.Run(name, func(t *testing.T) {
			tally := begin(look(tc.job, nil, streak{}, noon), carried{ending: true, conclusion: &conclusion{false, "R", "m"}})
			check(t, tally.conclude(noon), true)
			if got := tally.status.StartTime; (got == nil) != (tc.want == nil) || got != nil && !got.Time.Equal(*tc.want) {
				t.Errorf("started %v, want %v", got, tc.want)
			}
		})
	}
}

func TestSuspending(t *testing.T) {
	states := func(s batchv1.JobStatus) string {
		started := "not started"
		if s.StartTime != nil {
			started = fmt.Sprint("started ", noon.Sub(s.StartTime.Time))
		}
		for _, c := range s.Conditions {
			started += fmt.Sprintf(", %s %s %s", c.Type, c.Status, c.Reason)
		}
		return started
	}
	was := func(j *batchv1.Job) {
		j.Status.Conditions = []batchv1.JobCondition{condition(batchv1.JobSuspended, corev1.ConditionTrue, "JobSuspended", "Job suspended", noon.Add(-time.Hour))}
		j.Status.StartTime = nil
	}
	for name, tc := range map[string]struct {
		job                *batchv1.Job
		did                carried
		suspended, resumed bool
		want               string
	}{
		"it begins suspended":           {newJob(1, fresh, suspend), carried{}, true, false, "not started, Suspended True JobSuspended"},
		"it begins":                     {newJob(1, fresh), carried{}, false, false, "started 0s"},
		"it runs":                       {newJob(1), carried{}, false, false, "started 1h0m0s"},
		"it is suspended":               {newJob(1, suspend), carried{}, true, false, "not started, Suspended True JobSuspended"},
		"it stays suspended":            {newJob(1, was, suspend), carried{}, false, false, "not started, Suspended True JobSuspended"},
		"it is resumed":                 {newJob(1, was), carried{}, false, true, "started 0s, Suspended False JobResumed"},
		"one being deleted stays so":    {newJob(1, suspend, leaving), carried{}, false, false, "started 1h0m0s"},
		"one that ends while pods stay": {newJob(1, suspend), carried{ending: true}, false, false, "started 1h0m0s"},
		"it is not resumed then either": {newJob(1, was), carried{ending: true}, false, false, "started 0s, Suspended True JobSuspended"},
	} {
		t.Run(name, func(t *testing.T) {
			tally := begin(look(tc.job, nil, streak{}, noon), tc.did)
			check(t, states(tally.status), tc.want)
			var told []string
			for _, e := range tally.events {
				told = append(told, e.Reason)
			}
			check(t, slices.Contains(told, "Suspended"), tc.suspended)
			check(t, slices.Contains(told, "Resumed"), tc.resumed)
		})
	}
}
