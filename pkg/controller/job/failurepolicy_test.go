package job

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestFailurePolicies(t *testing.T) {
	// The published example: a bug ends the Job, a disruption does not count.
	published := []batchv1.PodFailurePolicyRule{exit(failJob, in, 42), onCondition(ignore, corev1.DisruptionTarget)}
	configIssue := []batchv1.PodFailurePolicyRule{onCondition(failJob, "ConfigIssue")}
	failIndexOn42 := []batchv1.PodFailurePolicyRule{exit(failIndex, in, 42)}
	of := func(init, main int32) podOption {
		return func(p *corev1.Pod) {
			failedWith(main)(p)
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "setup", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: init}}}}
		}
	}
	any42 := batchv1.PodFailurePolicyRule{Action: failJob, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: in, Values: []int32{42}}}
	for name, tc := range map[string]struct {
		rules  []batchv1.PodFailurePolicyRule
		pod    podOption
		action batchv1.PodFailurePolicyAction
		why    string
		free   bool
	}{
		"published: exit code 42":                    {published, failedWith(42), failJob, "Container main for pod ns/p failed with exit code 42 matching FailJob rule at index 0", false},
		"published: another exit code":               {published, failedWith(1), "", "", false},
		"published: a disruption":                    {published, func(p *corev1.Pod) { failedWith(137)(p); with(corev1.DisruptionTarget)(p) }, ignore, "", true},
		"published: the first rule wins":             {published, func(p *corev1.Pod) { failedWith(42)(p); with(corev1.DisruptionTarget)(p) }, failJob, "Container main for pod ns/p failed with exit code 42 matching FailJob rule at index 0", false},
		"published: a condition of one's own":        {configIssue, func(p *corev1.Pod) { failedWith(1)(p); with("ConfigIssue")(p) }, failJob, "Pod ns/p has condition ConfigIssue matching FailJob rule at index 0", false},
		"published: an index":                        {failIndexOn42, failedWith(42), failIndex, "", false},
		"counted by a rule":                          {[]batchv1.PodFailurePolicyRule{exit(countIt, in, 1), exit(failJob, notIn, 42)}, failedWith(1), countIt, "", false},
		"not in":                                     {[]batchv1.PodFailurePolicyRule{exit(ignore, notIn, 42)}, failedWith(1), ignore, "", true},
		"not in, but it is":                          {[]batchv1.PodFailurePolicyRule{exit(ignore, notIn, 42)}, failedWith(42), "", "", false},
		"a container that ended well is never meant": {[]batchv1.PodFailurePolicyRule{exit(failJob, notIn, 42)}, failedWith(0), "", "", false},
		"a container that still runs is not meant":   {[]batchv1.PodFailurePolicyRule{exit(failJob, notIn, 42)}, restarted(3), "", "", false},
		"another container is not meant":             {[]batchv1.PodFailurePolicyRule{exit(failJob, in, 42)}, of(42, 1), "", "", false},
		"any container, also an init container":      {[]batchv1.PodFailurePolicyRule{any42}, of(42, 1), failJob, "Container setup for pod ns/p failed with exit code 42 matching FailJob rule at index 0", false},
		"a condition that is not true": {configIssue, func(p *corev1.Pod) {
			with("ConfigIssue")(p)
			p.Status.Conditions[len(p.Status.Conditions)-1].Status = corev1.ConditionFalse
		}, "", "", false},
		"the first condition of the pod is named": {[]batchv1.PodFailurePolicyRule{{Action: failJob, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{
			{Type: "ConfigIssue", Status: corev1.ConditionTrue}, {Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}},
			func(p *corev1.Pod) { with(corev1.DisruptionTarget)(p); with("ConfigIssue")(p) }, failJob, "Pod ns/p has condition DisruptionTarget matching FailJob rule at index 0", false},
		"an unknown action is no rule":        {[]batchv1.PodFailurePolicyRule{exit("Explode", in, 1), exit(ignore, in, 1)}, failedWith(1), ignore, "", true},
		"an unknown operator matches nothing": {[]batchv1.PodFailurePolicyRule{exit(failJob, "Near", 1)}, failedWith(1), "", "", false},
		"a rule about nothing":                {[]batchv1.PodFailurePolicyRule{{Action: failJob}}, failedWith(1), "", "", false},
		"no rules":                            {nil, failedWith(1), "", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			m := matchFailure(&batchv1.PodFailurePolicy{Rules: tc.rules}, newPodOf("p", tc.pod))
			check(t, m.action, tc.action)
			check(t, m.why, tc.why)
			check(t, m.counts(), !tc.free)
		})
	}
	check(t, matchFailure(nil, newPodOf("p", broken)), match{})
}

func TestWhatCountsAsFailed(t *testing.T) {
	for name, tc := range map[string]struct {
		job  jobOption
		pod  podOption
		want bool
	}{
		"one that failed":                              {nil, broken, true},
		"one that runs":                                {nil, nil, false},
		"one that succeeded":                           {nil, success, false},
		"one that is deleted":                          {nil, goingAway, true},
		"one that succeeded and is deleted":            {nil, func(p *corev1.Pod) { success(p); goingAway(p) }, false},
		"one that is deleted, where it may succeed":    {replaceFailed, goingAway, false},
		"one that is deleted, with a failure policy":   {rules(), goingAway, false},
		"one that failed, where only that is replaced": {replaceFailed, broken, true},
	} {
		t.Run(name, func(t *testing.T) {
			j, p := newJob(1), newPodOf("p")
			if tc.job != nil {
				tc.job(j)
			}
			if tc.pod != nil {
				tc.pod(p)
			}
			check(t, failed(j, p), tc.want)
		})
	}
}

func TestWhenAPodEnded(t *testing.T) {
	p := newPodOf("p", unready)
	check(t, endedAt(p), noon.Add(-time.Hour)) // created
	goingAway(p)
	check(t, endedAt(p), noon)
	grace := int64(20_000_000_000) // for which the sum of the API server wraps
	long := newPodOf("long", unready, goingAway, func(p *corev1.Pod) {
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = ptr.To(ago(-time.Duration(grace)*time.Second)), &grace
	})
	check(t, endedAt(long), noon)
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: ago(time.Minute)}}
	check(t, endedAt(p), noon.Add(-time.Minute))
	at := func(d time.Duration) corev1.ContainerStatus {
		return corev1.ContainerStatus{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: ago(d)}}}
	}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{at(3 * time.Minute), at(2 * time.Minute)}
	check(t, endedAt(p), noon.Add(-2*time.Minute))
	p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{})
	check(t, endedAt(p), noon.Add(-time.Minute))
}

func FuzzFailurePolicy(f *testing.F) {
	f.Add("FailJob", "In", "main", int32(42), int32(42), "DisruptionTarget", "0", "1", uint8(0))
	f.Add("Ignore", "NotIn", "", int32(1), int32(0), "", "-1", "x", uint8(1))
	f.Add("FailIndex", "In", "other", int32(1), int32(1), "Ready", "99999999999", "", uint8(7))
	f.Fuzz(func(t *testing.T, action, operator, container string, code, exited int32, kind, i, n string, flags uint8) {
		rule := exit(batchv1.PodFailurePolicyAction(action), batchv1.PodFailurePolicyOnExitCodesOperator(operator), code)
		rule.OnExitCodes.ContainerName = ptr.To(container)
		if flags&1 > 0 {
			rule.OnExitCodes = nil
		}
		j := newJob(3, rules(rule, onCondition(ignore, corev1.PodConditionType(kind))), limit(1))
		if flags&2 > 0 {
			limitPerIndex(1)(j)
		}
		p := newPodOf("p", failedWith(exited), with(corev1.PodConditionType(kind)))
		p.Annotations[batchv1.JobCompletionIndexAnnotation] = i
		p.Annotations[batchv1.JobIndexFailureCountAnnotation] = n
		if flags&4 > 0 {
			goingAway(p)
		}
		v := look(j, []*corev1.Pod{p, newPodOf("q", index(1))}, streak{}, noon)
		plan := decide(v)
		tally := begin(v, carried{created: len(plan.create), deleted: len(plan.remove) + len(plan.end), conclusion: plan.conclusion})
		next, _ := tally.counted(freed(tally, len(tally.release)))
		s := next.status
		if s.Active < 0 || s.Succeeded < 0 || s.Failed < 0 || *s.Ready < 0 || *s.Terminating < 0 || v.failed < 0 {
			t.Fatalf("negative: %+v", s)
		}
		if s.Succeeded+s.Failed > 2 {
			t.Fatalf("two pods, but %d succeeded and %d failed", s.Succeeded, s.Failed)
		}
	})
}
