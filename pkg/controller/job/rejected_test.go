package job

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

// refused is a pod that was made so long ago and that its node rejected.
func refused(age time.Duration) podOption {
	return func(p *corev1.Pod) {
		p.CreationTimestamp = ago(age)
		p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu"}
	}
}

func accepted(age time.Duration) podOption {
	return func(p *corev1.Pod) {
		p.CreationTimestamp = ago(age)
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
	}
}

func TestRejectedPodsHoldOthersBack(t *testing.T) {
	const s = time.Second
	named := func(prefix string, all []*corev1.Pod) []*corev1.Pod {
		for _, p := range all {
			p.Name, p.UID = prefix+p.Name, "u"+p.UID
		}
		return all
	}
	indexes := func(all []*corev1.Pod) []*corev1.Pod {
		for i, p := range all {
			index(i)(p)
		}
		return all
	}
	done := func() *corev1.Pod { return newPodOf("ok", accepted(10*s), ended(corev1.PodSucceeded, 0, 0)) }
	for name, tc := range map[string]struct {
		job    *batchv1.Job
		pods   []*corev1.Pod
		off    bool
		create int
		wait   time.Duration
		until  time.Duration // of the condition; 0 for none
	}{
		"without rejections nothing":                  {job: newJob(3, parallel(3)), create: 3},
		"a Job waits by itself":                       {job: newJob(3, parallel(1)), pods: some(1, refused(4*s)), wait: 6 * s, until: 6 * s},
		"and says nothing without the flag":           {job: newJob(3, parallel(1)), pods: some(1, refused(4*s)), off: true, wait: 6 * s},
		"nor of other failures":                       {job: newJob(3, parallel(1)), pods: some(1, just), wait: 10 * s},
		"a Job waits by itself for longer":            {job: newJob(3, parallel(1)), pods: []*corev1.Pod{newPodOf("a", refused(60*s)), newPodOf("b", refused(4*s))}, wait: 16 * s, until: 16 * s},
		"it says nothing while some are made":         {job: newJob(2, limitPerIndex(5)), pods: some(1, refused(4*s), index(0)), create: 1, wait: 6 * s},
		"nor when none is to be made":                 {job: newJob(2, limitPerIndex(0)), pods: []*corev1.Pod{newPodOf("a", refused(4*s), index(0)), newPodOf("b", index(1))}},
		"it tries when that is over":                  {job: newJob(3, parallel(1)), pods: some(1, refused(11*s)), create: 1},
		"of many indexes all are tried at once":       {job: newJob(100, limitPerIndex(100), limit(1000)), pods: indexes(some(100, refused(11*s))), off: true, create: 100},
		"with the flag only some of them":             {job: newJob(100, limitPerIndex(100), limit(1000)), pods: indexes(some(100, refused(11*s))), create: 32},
		"or none":                                     {job: newJob(100, limitPerIndex(100), limit(1000)), pods: append(indexes(some(100, refused(41*s))), named("q", some(32, index(99), refused(5*s)))...), wait: 5 * s, until: 5 * s},
		"a success lets all be tried":                 {job: newJob(200, parallel(2), limit(1000)), pods: append(some(66, refused(20*s)), done()), off: true, create: 2},
		"with the flag no more than fit in some time": {job: newJob(200, parallel(2), limit(1000)), pods: append(some(66, refused(60*s)), done()), wait: 240 * s, until: 240 * s},
		"none are made of a suspended Job":            {job: newJob(3, parallel(1), suspend), pods: some(1, refused(4*s))},
		"none of one that is deleted":                 {job: newJob(3, parallel(1), leaving), pods: some(1, refused(4*s))},
		"a Job that fails holds nothing back":         {job: newJob(3, parallel(1), limit(0)), pods: some(1, refused(4*s))},
		"enough run":                                  {job: newJob(3, parallel(1), counted(0, 1)), pods: append(some(1, untracked, refused(9*s)), newPodOf("ok", accepted(5*s)))},
	} {
		t.Run(name, func(t *testing.T) {
			v := look(tc.job, tc.pods, streak{}, noon)
			if !tc.off {
				v.allowance = v.allowanceNow()
			}
			p := decide(v)
			check(t, len(p.create), tc.create)
			check(t, p.wait, tc.wait)
			var until time.Duration
			if !p.until.IsZero() {
				until = p.until.Sub(noon)
			}
			check(t, until, tc.until)
			check(t, p.until.IsZero(), tc.until == 0)
		})
	}
}

func TestTheConditionTellsOfHeldPods(t *testing.T) {
	until := noon.Add(10 * time.Second)
	two := &rejections.Allowance{InARow: 2, Reason: "OutOfcpu"}
	is := func(message string, since time.Duration) batchv1.JobCondition {
		c := condition(rejections.Condition, corev1.ConditionTrue, rejections.Reason, message, noon)
		c.LastTransitionTime = ago(since)
		return c
	}
	other := batchv1.JobCondition{Type: batchv1.JobSuspended}
	const text = "nodes reject the pods (2 in a row, the last with reason OutOfcpu); the next pod is created at 2026-01-01T12:00:10Z"
	for name, tc := range map[string]struct {
		have      []batchv1.JobCondition
		allowance *rejections.Allowance
		until     time.Time
		want      []batchv1.JobCondition
		news      bool
	}{
		"it is added":                   {[]batchv1.JobCondition{other}, two, until, []batchv1.JobCondition{other, is(text, 0)}, true},
		"it says the next time":         {[]batchv1.JobCondition{is("before", time.Hour), other}, two, until, []batchv1.JobCondition{is(text, time.Hour), other}, true},
		"it says so once":               {[]batchv1.JobCondition{is(text, time.Hour)}, two, until, []batchv1.JobCondition{is(text, time.Hour)}, false},
		"it stays while a try is made":  {[]batchv1.JobCondition{is("before", time.Hour)}, two, time.Time{}, []batchv1.JobCondition{is("before", time.Hour)}, false},
		"it goes when one was accepted": {[]batchv1.JobCondition{is("before", time.Hour), other}, &rejections.Allowance{}, time.Time{}, []batchv1.JobCondition{other}, true},
		"it goes when the Job ends":     {[]batchv1.JobCondition{is("before", time.Hour), other}, nil, until, []batchv1.JobCondition{other}, true},
		"without it nothing changes":    {[]batchv1.JobCondition{other}, nil, time.Time{}, []batchv1.JobCondition{other}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := withBackoff(tc.have, tc.allowance, tc.until, noon)
			news := cmp.Diff(tc.have, got) != ""
			if d := cmp.Diff(tc.want, got); d != "" || news != tc.news {
				t.Errorf("news %v, differs (-want +got):\n%s", news, d)
			}
		})
	}
}

func TestTheConditionStaysWhileAJobMakesPods(t *testing.T) {
	lost := &conclusion{false, batchv1.JobReasonBackoffLimitExceeded, messageBackoffLimit}
	for name, tc := range map[string]struct {
		job jobOption
		did carried
		has bool
	}{
		"it goes on":    {parallel(1), carried{}, true},
		"it fails":      {parallel(1), carried{conclusion: lost}, false},
		"suspended":     {suspend, carried{}, false},
		"being deleted": {leaving, carried{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			v := look(newJob(1, announced(rejections.Condition, rejections.Reason, "before"), tc.job), some(1, refused(4*time.Second)), streak{}, noon)
			v.allowance = v.allowanceNow()
			check(t, strings.Contains(written(begin(v, tc.did).status), rejections.Condition), tc.has)
		})
	}
}

// TestFiveMinutesOfRejections has nodes reject all pods for five minutes. The
// controller is killed, its caches lag and answers get lost.
func TestFiveMinutesOfRejections(t *testing.T) {
	for name, tc := range map[string]struct {
		job         func() *batchv1.Job
		seeds       uint64
		least, most int
	}{
		"by pod":                 {func() *batchv1.Job { return newJob(10, fresh, limit(1000)) }, 40, 2, 70},
		"by pod, one at a time":  {func() *batchv1.Job { return newJob(3, fresh, parallel(1), limit(1000)) }, 40, 2, 8},
		"by index, with limits":  {func() *batchv1.Job { return newJob(50, fresh, limitPerIndex(1000), limit(100000)) }, 5, 51, 120},
		"whatever fails ignored": {func() *batchv1.Job { return newJob(10, fresh, rules(onCondition(ignore, "Rejected")), limit(0)) }, 40, 2, 70},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range testworld.Seeds(t, tc.seeds) {
				w := newWorld(t, seed, tc.job())
				w.patient, w.exact, w.rig.patient = true, true, true
				w.rejects = func() bool { return w.clock.Sub(noon) < 5*time.Minute }
				made := 0
				w.Always(func() string {
					if w.rejects() {
						made = w.Made
					}
					return ""
				})
				w.end(seed)
				if made < tc.least || made > tc.most {
					t.Fatalf("seed %d: %d pods were made, wanted %d to %d\n%s", seed, made, tc.least, tc.most, w.Transcript())
				}
				if seed == 0 {
					t.Logf("%d pods", made)
				}
				for _, c := range w.server.job.Status.Conditions {
					if c.Type == rejections.Condition {
						t.Fatalf("seed %d: a Job that has ended has the condition %v", seed, c)
					}
				}
			}
		})
	}
}
