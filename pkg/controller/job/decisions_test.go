package job

import (
	"fmt"
	"math"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"
)

func TestSuccessPolicies(t *testing.T) {
	leader := batchv1.SuccessPolicyRule{SucceededIndexes: ptr.To("0")}
	// The published example: one of three indexes is enough.
	published := batchv1.SuccessPolicyRule{SucceededIndexes: ptr.To("0,2-3"), SucceededCount: ptr.To(int32(1))}
	for name, tc := range map[string]struct {
		rules     []batchv1.SuccessPolicyRule
		succeeded string
		want      string
	}{
		"published: one of the named":      {[]batchv1.SuccessPolicyRule{published}, "2", "Matched rules at index 0"},
		"published: only others":           {[]batchv1.SuccessPolicyRule{published}, "1,4-9", ""},
		"the leader":                       {[]batchv1.SuccessPolicyRule{leader}, "0", "Matched rules at index 0"},
		"all named":                        {[]batchv1.SuccessPolicyRule{{SucceededIndexes: ptr.To("0-2")}}, "0,1", ""},
		"all named are there":              {[]batchv1.SuccessPolicyRule{{SucceededIndexes: ptr.To("0-2")}}, "0-3", "Matched rules at index 0"},
		"any three":                        {[]batchv1.SuccessPolicyRule{{SucceededCount: ptr.To(int32(3))}}, "1,5,9", "Matched rules at index 0"},
		"not three yet":                    {[]batchv1.SuccessPolicyRule{{SucceededCount: ptr.To(int32(3))}}, "1,5", ""},
		"the first rule that is fulfilled": {[]batchv1.SuccessPolicyRule{leader, {SucceededCount: ptr.To(int32(2))}, {SucceededCount: ptr.To(int32(1))}}, "4,5", "Matched rules at index 1"},
		"indexes that are no more":         {[]batchv1.SuccessPolicyRule{{SucceededIndexes: ptr.To("20")}}, "0-9", ""},
		"a rule about nothing":             {[]batchv1.SuccessPolicyRule{{}}, "0-9", ""},
		"nothing has succeeded":            {[]batchv1.SuccessPolicyRule{{SucceededCount: ptr.To(int32(0))}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			why, met := matchSuccess(&batchv1.SuccessPolicy{Rules: tc.rules}, 10, parseIndexes(tc.succeeded, 10))
			check(t, why, tc.want)
			check(t, met, tc.want != "")
		})
	}
	_, met := matchSuccess(nil, 10, parseIndexes("0-9", 10))
	check(t, met, false)
}

func TestBackoff(t *testing.T) {
	for failures, want := range map[int]time.Duration{-1: 0, 0: 0, 1: 10 * time.Second, 2: 20 * time.Second, 3: 40 * time.Second, 6: 320 * time.Second, 7: 10 * time.Minute, 1000: 10 * time.Minute} {
		check(t, backoff(failures), want)
	}
}

func TestStreaks(t *testing.T) {
	j := newJob(5)
	at := func(name string, phase corev1.PodPhase, since time.Duration, options ...podOption) *corev1.Pod {
		return newPodOf(name, append([]podOption{ended(phase, 1, since)}, options...)...)
	}
	setupEnded := func(p *corev1.Pod) {
		p.Spec.InitContainers = append(p.Spec.InitContainers, corev1.Container{Name: "setup"})
		p.Status.InitContainerStatuses = append(p.Status.InitContainerStatuses, corev1.ContainerStatus{Name: "setup", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{FinishedAt: ago(time.Second)}}})
	}
	failed, succeeded := corev1.PodFailed, corev1.PodSucceeded
	for name, tc := range map[string]struct {
		before streak
		pods   []*corev1.Pod
		want   time.Duration
	}{
		"nothing":                                                   {streak{}, nil, 0},
		"one failure, just now":                                     {streak{}, []*corev1.Pod{at("a", failed, 0)}, 10 * time.Second},
		"one failure, 4 s ago":                                      {streak{}, []*corev1.Pod{at("a", failed, 4*time.Second)}, 6 * time.Second},
		"two failures, the last 4 s ago":                            {streak{}, []*corev1.Pod{at("a", failed, 4*time.Second), at("b", failed, time.Minute)}, 16 * time.Second},
		"a success forgives what was before":                        {streak{}, []*corev1.Pod{at("a", failed, time.Second), at("b", failed, 9*time.Second), at("c", succeeded, 5*time.Second)}, 9 * time.Second},
		"a success of the same second":                              {streak{}, []*corev1.Pod{at("a", failed, 0), at("c", succeeded, 0)}, 0},
		"a success of the same second, counted":                     {streak{}, []*corev1.Pod{at("a", failed, 0), at("c", succeeded, 0, untracked)}, 10 * time.Second},
		"both of the same second, counted":                          {streak{}, []*corev1.Pod{at("a", failed, 0, untracked), at("c", succeeded, 0, untracked)}, 0},
		"a failure that is known, then a success":                   {streak{failures: []failure{{"a", noon}}}, []*corev1.Pod{at("c", succeeded, 0)}, 0},
		"a success after all":                                       {streak{}, []*corev1.Pod{at("a", failed, 3*time.Second), at("c", succeeded, time.Second)}, 0},
		"pods that were counted still tell":                         {streak{}, []*corev1.Pod{at("a", failed, 0, untracked), at("b", failed, 0, untracked)}, 20 * time.Second},
		"pods that are gone are remembered":                         {streak{failures: []failure{{"x", noon.Add(-time.Second)}}}, nil, 9 * time.Second},
		"a pod is not remembered twice":                             {streak{failures: []failure{{"a", noon}}}, []*corev1.Pod{at("a", failed, time.Second)}, 10 * time.Second},
		"a remembered success forgives what was counted":            {streak{success: noon}, []*corev1.Pod{at("a", failed, time.Second, untracked)}, 0},
		"not what is new":                                           {streak{success: noon}, []*corev1.Pod{at("a", failed, time.Second)}, 9 * time.Second},
		"a success of a clock that is behind":                       {streak{failures: []failure{{"a", noon}}}, []*corev1.Pod{at("c", succeeded, 2*time.Minute)}, 0},
		"not again as long as it is to be counted":                  {streak{failures: []failure{{"a", noon}}, fresh: sets.New(types.UID("c"))}, []*corev1.Pod{at("c", succeeded, 2*time.Minute)}, 10 * time.Second},
		"a failure to come is now":                                  {streak{}, []*corev1.Pod{at("a", failed, -2*time.Hour)}, 10 * time.Second},
		"when it was counted is not known":                          {streak{}, []*corev1.Pod{at("a", failed, -2*time.Hour, untracked)}, 0},
		"a success to come forgives what was before now":            {streak{}, []*corev1.Pod{at("a", failed, time.Second), at("c", succeeded, -2*time.Hour)}, 0},
		"not what is new after it was counted":                      {streak{}, []*corev1.Pod{at("a", failed, time.Second), at("c", succeeded, -5*time.Minute, untracked)}, 9 * time.Second},
		"nor what is known":                                         {streak{failures: []failure{{"a", noon}}}, []*corev1.Pod{at("c", succeeded, -5*time.Minute, untracked)}, 10 * time.Second},
		"one that is deleted fails when it is":                      {streak{}, []*corev1.Pod{newPodOf("a", goingAway, unready)}, 10 * time.Second},
		"a sidecar ends last":                                       {streak{}, []*corev1.Pod{at("a", failed, time.Minute, sidecarEnded(2*time.Second))}, 8 * time.Second},
		"a container ends last":                                     {streak{}, []*corev1.Pod{at("a", failed, 3*time.Second, sidecarEnded(time.Minute))}, 7 * time.Second},
		"a sidecar that has not ended: the pod's unreadiness tells": {streak{}, []*corev1.Pod{at("a", failed, time.Minute, sidecarRuns, unreadySince(4*time.Second))}, 6 * time.Second},
		"other init containers do not matter":                       {streak{}, []*corev1.Pod{at("a", failed, 5*time.Second, initEnded(time.Second))}, 5 * time.Second},
		"nor do they beside a sidecar":                              {streak{}, []*corev1.Pod{at("a", failed, 5*time.Second, sidecarEnded(3*time.Second), setupEnded)}, 7 * time.Second},
		"one that was taken away is no failure":                     {streak{}, []*corev1.Pod{newPodOf("a", goingAway, untracked), at("b", failed, 0, goingAway, untracked)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, tc.before.with(j, tc.pods, noon).remaining(noon), tc.want)
		})
	}
	var many []*corev1.Pod
	for i := range 100 {
		many = append(many, at(fmt.Sprint("p", i), failed, time.Duration(i)*time.Second))
	}
	s := streak{}.with(j, many, noon)
	check(t, len(s.failures), mostFailures)
	check(t, s.remaining(noon), 10*time.Minute)
	check(t, s.remaining(noon.Add(time.Hour)), 0)
}

// TestAClockThatIsAheadCountsOnce holds that a pod which says it would end later ended when it
// was seen first, also when that time comes.
func TestAClockThatIsAheadCountsOnce(t *testing.T) {
	j, later := newJob(5), 10*time.Minute
	ahead := func(options ...podOption) *corev1.Pod {
		return newPodOf("a", append([]podOption{ended(corev1.PodFailed, 1, -later)}, options...)...)
	}
	success := func(options ...podOption) *corev1.Pod {
		return newPodOf("b", append([]podOption{ended(corev1.PodSucceeded, 1, -time.Minute)}, options...)...)
	}
	s := streak{}.with(j, []*corev1.Pod{ahead()}, noon)
	check(t, s.remaining(noon), 10*time.Second)
	_, wait := s.dueIndexes([]int{2}, map[int]*corev1.Pod{2: ahead()}, noon)
	check(t, wait, 10*time.Second)
	due, _ := s.dueIndexes([]int{2}, map[int]*corev1.Pod{2: ahead()}, noon.Add(10*time.Second))
	check(t, len(due), 1)
	s = s.with(j, []*corev1.Pod{ahead(untracked), success()}, noon.Add(time.Minute))
	check(t, s.remaining(noon.Add(time.Minute)), 0)
	s = s.with(j, []*corev1.Pod{ahead(untracked), success(untracked)}, noon.Add(later))
	check(t, s.remaining(noon.Add(later)), 0)
}

// A pod that runs has not ended, whatever the clock of its node says of its conditions.
func TestAPodThatRunsIsNotAhead(t *testing.T) {
	j, end := newJob(5), noon.Add(10*time.Minute)
	running := newPodOf("a", func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(noon.Add(30 * time.Second))}}
	})
	s := streak{}.with(j, []*corev1.Pod{running}, noon)
	check(t, len(s.ahead), 0)
	broken := newPodOf("a", ended(corev1.PodFailed, 1, -10*time.Minute))
	s = s.with(j, []*corev1.Pod{broken}, end)
	check(t, s.remaining(end), 10*time.Second)
	_, wait := s.dueIndexes([]int{2}, map[int]*corev1.Pod{2: broken}, end)
	check(t, wait, 10*time.Second)
}

func TestVerdicts(t *testing.T) {
	even := func(i int) podOption { // the published example: even indexes fail, twice each
		return func(p *corev1.Pod) {
			index(i)(p)
			if i%2 == 0 {
				broken(p)
				failures(1, 0)(p)
			} else {
				success(p)
			}
		}
	}
	var published []*corev1.Pod
	for i := range 10 {
		published = append(published, newPodOf(fmt.Sprint("p", i), even(i)))
	}
	onFailure := func(j *batchv1.Job) { j.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyOnFailure }
	for name, tc := range map[string]struct {
		job  *batchv1.Job
		pods []*corev1.Pod
		want string
	}{
		"it goes on":                            {newJob(3), some(3), ""},
		"too many failures":                     {newJob(3, limit(1)), some(2, broken), "FailureTarget BackoffLimitExceeded " + messageBackoffLimit},
		"as many failures as allowed":           {newJob(3, limit(2)), some(2, broken), ""},
		"failures of before count":              {newJob(3, limit(2), counted(0, 2)), some(1, broken), "FailureTarget BackoffLimitExceeded " + messageBackoffLimit},
		"a pod that was noted counts once":      {newJob(3, limit(1), noted(nil, []types.UID{"p0"})), some(1, broken), ""},
		"no failure is allowed":                 {newJob(3, limit(0)), some(1, broken), "FailureTarget BackoffLimitExceeded " + messageBackoffLimit},
		"restarts in place":                     {newJob(3, limit(3), onFailure), some(1, restarted(3)), "FailureTarget BackoffLimitExceeded " + messageBackoffLimit},
		"restarts of all pods together":         {newJob(3, limit(3), onFailure), some(3, restarted(1)), "FailureTarget BackoffLimitExceeded " + messageBackoffLimit},
		"restarts within the limit":             {newJob(3, limit(3), onFailure), some(1, restarted(2)), ""},
		"no restart is allowed, none happened":  {newJob(3, limit(0), onFailure), some(3), ""},
		"restarts where pods are not restarted": {newJob(3, limit(1)), some(1, restarted(3)), ""},
		"the deadline is over":                  {newJob(3, deadline(3600)), some(3), "FailureTarget DeadlineExceeded " + messageDeadline},
		"the deadline is not over":              {newJob(3, deadline(3601)), some(3), ""},
		"a deadline that never comes":           {newJob(3, deadline(math.MaxInt64)), some(3), ""},
		"a suspended Job has no deadline":       {newJob(3, deadline(1), suspend), nil, ""},
		"the deadline of a fresh Job":           {newJob(3, deadline(1), fresh), nil, ""},
		"a failure that fails the Job":          {newJob(3, rules(exit(failJob, in, 42))), some(1, failedWith(42)), "FailureTarget PodFailurePolicy Container main for pod ns/p0 failed with exit code 42 matching FailJob rule at index 0"},
		"a failure that is ignored":             {newJob(3, limit(0), rules(exit(ignore, in, 42))), some(1, failedWith(42)), ""},
		"published: per index":                  {newJob(10, parallel(3), limitPerIndex(1), maxFailed(5)), published, "FailureTarget FailedIndexes " + messageFailed},
		"more indexes failed than allowed":      {newJob(10, parallel(3), limitPerIndex(1), maxFailed(4)), published, "FailureTarget MaxFailedIndexesExceeded " + messageMaxFailed},
		"an index is left":                      {newJob(11, limitPerIndex(1)), published, ""},
		"an index is given up at once":          {newJob(1, limitPerIndex(3), rules(exit(failIndex, in, 42))), some(1, failedWith(42), index(0)), "FailureTarget FailedIndexes " + messageFailed},
		"a pod that was taken away":             {newJob(1, limitPerIndex(0)), some(1, goingAway, untracked, index(0), failures(0, 0)), ""},
		"a pod that was taken away has ended":   {newJob(1, limitPerIndex(0)), some(1, broken, goingAway, untracked, index(0), failures(0, 0)), ""},
		"a pod that somebody else deletes":      {newJob(1, limitPerIndex(0)), some(1, goingAway, index(0), failures(0, 0)), "FailureTarget FailedIndexes " + messageFailed},
		"an index that was given up is kept":    {newJob(1, limitPerIndex(0), givenIndexes("0")), some(1, broken, untracked, index(0), failures(0, 0)), "FailureTarget FailedIndexes " + messageFailed},
		"taken away, and too few may fail":      {newJob(3, limitPerIndex(0), maxFailed(0)), some(1, goingAway, untracked, index(0), failures(0, 0)), ""},
		"per index: all have succeeded":         {newJob(2, limitPerIndex(1)), []*corev1.Pod{newPodOf("a", success, index(0)), newPodOf("b", success, index(1))}, ""},
		"an index has failures left":            {newJob(1, limitPerIndex(3)), some(1, broken, index(0), failures(2, 0)), ""},
		"success by policy":                     {newJob(4, successRules(batchv1.SuccessPolicyRule{SucceededCount: ptr.To(int32(1))})), []*corev1.Pod{newPodOf("a", success, index(2)), newPodOf("b", index(1))}, "SuccessCriteriaMet SuccessPolicy Matched rules at index 0"},
		"failure comes before success":          {newJob(4, limit(0), successRules(batchv1.SuccessPolicyRule{SucceededCount: ptr.To(int32(1))})), []*corev1.Pod{newPodOf("a", success, index(2)), newPodOf("b", broken, index(1))}, "FailureTarget BackoffLimitExceeded " + messageBackoffLimit},
		"what was announced stays":              {newJob(4, limit(0), announced(batchv1.JobSuccessCriteriaMet, "R", "m")), some(1, broken), "SuccessCriteriaMet R m"},
		"a failure that was announced stays":    {newJob(1, announced(batchv1.JobFailureTarget, "R", "m")), some(1, success), "FailureTarget R m"},
	} {
		t.Run(name, func(t *testing.T) {
			got := ""
			if d := conclude(look(tc.job, tc.pods, streak{}, noon)); d != nil {
				got = fmt.Sprintf("%s %s %s", d.interim(), d.reason, d.message)
			}
			check(t, got, tc.want)
		})
	}
}

func TestCompletion(t *testing.T) {
	for name, tc := range map[string]struct {
		job    *batchv1.Job
		pods   []*corev1.Pod
		active int
		want   bool
	}{
		"not yet":                    {newJob(2), some(1, success), 0, false},
		"enough":                     {newJob(2), some(2, success), 0, true},
		"enough, but one still runs": {newJob(2), some(2, success), 1, false},
		"more than enough":           {newJob(2, counted(2, 0)), some(1, success), 0, true},
		"nothing to do":              {newJob(0), nil, 0, true},
		"a work queue that is empty": {newJob(2, workQueue), some(1, success), 0, true},
		"a work queue that nobody has found empty": {newJob(2, workQueue), some(1, broken), 0, false},
		"the same index twice":                     {newJob(2, indexedMode), some(2, success, index(1)), 0, false},
		"an index that was given up":               {newJob(2, limitPerIndex(0), givenIndexes("0"), doneIndexes("1")), some(1, success, index(0)), 0, false},
		"all indexes":                              {newJob(2, indexedMode, doneIndexes("0")), some(2, success, index(1)), 0, true},
		"an index beyond the last":                 {newJob(2, indexedMode, doneIndexes("0")), some(1, success, index(7)), 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, completed(look(tc.job, tc.pods, streak{}, noon), tc.active) != nil, tc.want)
		})
	}
}
