package job

import (
	"errors"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

// played lists the phases of a plan: what each says, and the steps that it takes. A
// step becomes what answers say by its verb, or is done.
func played(p act.Plan, answers map[string]act.Outcome) []string {
	var phases []string
	var results act.Results
	take := func(step act.Step) bool {
		became := act.Done
		if answer, is := answers[step.Verb()]; is {
			became = answer
		}
		result := act.Result{Step: step, Became: became}
		words := step.Verb() + " " + step.About().GetName()
		switch s := step.(type) {
		case act.Status:
			job := s.Of.DeepCopyObject().(*batchv1.Job)
			s.Set(job)
			result.Object = job
			words += ": " + written(job.Status)
			for _, e := range s.Tell {
				words += ", tell " + e.Reason
			}
		case act.Adopt:
			result.Object = s.Child
		}
		if became == act.Refused {
			result.Err = errors.New("no")
		}
		results = append(results, result)
		phases = append(phases, "  "+strings.TrimSpace(words))
		return became != act.Refused
	}
	for {
		phases = append(phases, p.Why)
		failed := false
		for _, stage := range p.Stages {
			for _, step := range stage.Steps {
				steps := []act.Step{step}
				if part, is := step.(act.Part); is {
					steps = part.Stages[0].Steps
				}
				failed = slices.ContainsFunc(steps, func(s act.Step) bool { return !take(s) }) || failed
			}
			if failed {
				break
			}
		}
		next := p.Then
		if failed {
			next = p.Else
		}
		if next != nil {
			p = next(results)
			continue
		}
		if p.Status != nil {
			if step := p.Status(results); step != nil {
				take(step)
			}
		}
		return phases
	}
}

func observing(job *batchv1.Job, all ...*corev1.Pod) observed {
	selector := labels.SelectorFromSet(job.Spec.Selector.MatchLabels)
	return observed{job: job, selector: selector, claims: ownership.Claim(job, selector, all)}
}

func TestTheDebugPageShowsEachPhase(t *testing.T) {
	running := func(n int32) jobOption {
		return func(j *batchv1.Job) { j.Status.Active, j.Status.Ready = n, ptr.To(n) }
	}
	refused := func(verb string) map[string]act.Outcome { return map[string]act.Outcome{verb: act.Refused} }
	elsewhere := newJob(1)
	elsewhere.Spec.ManagedBy = ptr.To("example.com/mine")
	misfit := observing(newJob(1))
	misfit.invalid = errors.New("no selector")
	goes := observing(newJob(1, leaving), newPodOf("a"))
	goes.invalid = misfit.invalid
	failsOnce := []*corev1.Pod{newPodOf("a", index(0), just), newPodOf("b", index(1))}
	longAgo := []*corev1.Pod{newPodOf("a", index(0), failedWith(1)), newPodOf("b", index(1))}
	ends := observing(newJob(2, limitPerIndex(1)), failsOnce...)
	ends.namespaceEnds = true
	for name, tc := range map[string]struct {
		of      observed
		answers map[string]act.Outcome
		want    []string
	}{
		"settled":                {observing(newJob(2, running(2)), some(2)...), nil, []string{"2 pods active as wanted; 0 succeeded, 0 failed"}},
		"complete":               {observing(newJob(3, counted(3, 1), announced(batchv1.JobComplete, "", ""))), nil, []string{"complete: 3 pods succeeded, 1 failed"}},
		"failed":                 {observing(newJob(3, counted(0, 7), announced(batchv1.JobFailed, "", ""))), nil, []string{"failed: 0 pods succeeded, 7 failed"}},
		"run by others":          {observing(elsewhere), nil, []string{"run by example.com/mine"}},
		"no selector":            {misfit, nil, []string{"its selector is invalid or does not match its template"}},
		"nor when it is deleted": {goes, nil, []string{"it is being deleted, and its selector is invalid: its pods are let go", "  patch a"}},
		"being deleted": {observing(newJob(2, running(1), leaving), newPodOf("a")), nil, []string{
			"being deleted: its pods belong to the garbage collector; removing the finalizers of 1 pods that are noted in the status", "  patch a"}},
		"per index, it backs off": {observing(newJob(2, limitPerIndex(1)), failsOnce...), nil, []string{
			"1 pods active, 1 to create; reporting 1 pods active, 0 terminating", "  report pi: 1 active 1 ready 0 terminating, 0 succeeded 0 failed; failed indexes"}},
		"per index, in a namespace that ends": {ends, nil, []string{
			"reporting 1 pods active, 0 terminating; noting 1 pods before their finalizers are removed", "  report pi: 1 active 1 ready 0 terminating, 0 succeeded 0 failed; noted [][a]; failed indexes",
			"1 pods active, 1 to create; removing the finalizers of 1 pods that are noted in the status", "  patch a", "  report pi: 1 active 1 ready 0 terminating, 0 succeeded 1 failed; failed indexes"}},
		"per index, as it turns out": {observing(newJob(2, limitPerIndex(1)), longAgo...), map[string]act.Outcome{"create": act.Ending}, []string{"1 pods active, 1 to create", "  create",
			"reporting 1 pods active, 0 terminating; noting 1 pods before their finalizers are removed", "  report pi: 1 active 1 ready 0 terminating, 0 succeeded 0 failed; noted [][a]; failed indexes",
			"1 pods active, 1 to create; removing the finalizers of 1 pods that are noted in the status", "  patch a", "  report pi: 1 active 1 ready 0 terminating, 0 succeeded 1 failed; failed indexes"}},
		"it backs off": {observing(newJob(1), newPodOf("a", just, untracked)), nil, []string{"0 pods active, 1 to create, held back for 10s after 1 failures"}},
		"its leftovers go": {observing(newJob(1, counted(1, 0), announced(batchv1.JobComplete, "", "")), some(1)...), nil, []string{
			"complete: 1 pods succeeded, 0 failed; 1 still have the finalizer: removing it", "  patch p0"}},
		"the end": {observing(newJob(1, running(1)), some(1, success)...), nil, []string{
			"reporting 0 pods active, 0 terminating; noting 1 pods before their finalizers are removed; SuccessCriteriaMet (CompletionsReached)",
			"  report pi: 0 active 0 ready 0 terminating, 0 succeeded 0 failed; noted [p0][]; SuccessCriteriaMet",
			"Complete (CompletionsReached): 1 finalizers to take off, 0 pods terminating",
			"  patch p0",
			"  report pi: 0 active 0 ready 0 terminating, 1 succeeded 0 failed; SuccessCriteriaMet; Complete, tell Completed"}},
		"what cannot be noted keeps its finalizer": {observing(newJob(1, running(1)), some(1, success)...), refused("report"), []string{
			"reporting 0 pods active, 0 terminating; noting 1 pods before their finalizers are removed; SuccessCriteriaMet (CompletionsReached)",
			"  report pi: 0 active 0 ready 0 terminating, 0 succeeded 0 failed; noted [p0][]; SuccessCriteriaMet"}},
		"what keeps its finalizer is not counted": {observing(newJob(1, running(1)), some(1, success)...), refused("patch"), []string{
			"reporting 0 pods active, 0 terminating; noting 1 pods before their finalizers are removed; SuccessCriteriaMet (CompletionsReached)",
			"  report pi: 0 active 0 ready 0 terminating, 0 succeeded 0 failed; noted [p0][]; SuccessCriteriaMet",
			"Complete (CompletionsReached): 1 finalizers to take off, 0 pods terminating",
			"  patch p0"}},
		"a Job that is gone frees nothing": {observing(newJob(1, running(1)), some(1, success)...), map[string]act.Outcome{"report": act.WasGone}, []string{
			"reporting 0 pods active, 0 terminating; noting 1 pods before their finalizers are removed; SuccessCriteriaMet (CompletionsReached)",
			"  report pi: 0 active 0 ready 0 terminating, 0 succeeded 0 failed; noted [p0][]; SuccessCriteriaMet",
			"the Job is gone, which the cache shows soon"}},
		"what ended is counted though none can be made": {observing(newJob(2, running(1), parallel(1)), newPodOf("a", success)), refused("create"), []string{
			"0 pods active, 1 to create", "  create",
			"reporting 0 pods active, 0 terminating; noting 1 pods before their finalizers are removed",
			"  report pi: 0 active 0 ready 0 terminating, 0 succeeded 0 failed; noted [a][]",
			"0 pods active, 1 to create; removing the finalizers of 1 pods that are noted in the status",
			"  patch a",
			"  report pi: 0 active 0 ready 0 terminating, 1 succeeded 0 failed"}},
		"the end with one pod too many": {observing(newJob(1, running(2)), newPodOf("a", success), newPodOf("b")), nil, []string{
			"1 pods active, 0 wanted: 1 to delete", "  patch b", "  delete b",
			"reporting 0 pods active, 1 terminating; noting 2 pods before their finalizers are removed; SuccessCriteriaMet (CompletionsReached)",
			"  report pi: 0 active 0 ready 1 terminating, 0 succeeded 0 failed; noted [a][]; SuccessCriteriaMet",
			"Complete (CompletionsReached): 2 finalizers to take off, 1 pods terminating", "  patch a", "  patch b",
			"  report pi: 0 active 0 ready 1 terminating, 1 succeeded 0 failed; SuccessCriteriaMet"}},
		"suspended: the finalizer goes first": {observing(newJob(1, running(1), suspend), some(1)...), nil, []string{
			"suspended: 1 active pods to delete", "  patch p0", "  delete p0",
			"suspended: 1 active pods to delete; reporting 0 pods active, 1 terminating",
			"  report pi: 0 active 0 ready 1 terminating, 0 succeeded 0 failed; Suspended, tell Suspended"}},
		"one whose finalizer stays is not deleted": {observing(newJob(1, running(1), suspend), some(1)...), refused("patch"), []string{
			"suspended: 1 active pods to delete", "  patch p0",
			"suspended: 1 active pods to delete; reporting 1 pods active, 0 terminating",
			"  report pi: 1 active 1 ready 0 terminating, 0 succeeded 0 failed; Suspended, tell Suspended"}},
		"one whose deletion is refused still counts as ready": {observing(newJob(1, running(1), suspend), some(1)...), refused("delete"), []string{
			"suspended: 1 active pods to delete", "  patch p0", "  delete p0",
			"suspended: 1 active pods to delete; reporting 1 pods active, 0 terminating",
			"  report pi: 1 active 1 ready 0 terminating, 0 succeeded 0 failed; Suspended, tell Suspended"}},
		"a Job that is given up waits for its pods": {observing(newJob(2, running(2), limit(0)), newPodOf("a", broken), newPodOf("b")), nil, []string{
			"FailureTarget (BackoffLimitExceeded): 1 active pods to end", "  delete b",
			"reporting 0 pods active, 1 terminating; noting 2 pods before their finalizers are removed; FailureTarget (BackoffLimitExceeded)",
			"  report pi: 0 active 0 ready 1 terminating, 0 succeeded 0 failed; noted [][a b]; FailureTarget",
			"Failed (BackoffLimitExceeded): 2 finalizers to take off, 1 pods terminating", "  patch a", "  patch b",
			"  report pi: 0 active 0 ready 1 terminating, 0 succeeded 2 failed; FailureTarget"}},
		"nobody is announced whose pods cannot be deleted": {observing(newJob(1, running(1), deadline(1)), newPodOf("b")), refused("delete"), []string{
			"FailureTarget (DeadlineExceeded): 1 active pods to end", "  delete b", "FailureTarget (DeadlineExceeded): 1 active pods to end"}},
		"what runs uncounted is tracked again": {observing(newJob(1, running(1)), some(1, untracked)...), refused("patch"), []string{
			"1 running pods have lost the finalizer: adding it again, so that they are counted", "  patch p0",
			"1 pods active as wanted; 0 succeeded, 0 failed"}},
		"adopted first, and looked for": {observing(newJob(2, running(1), parallel(1), noted([]types.UID{"x"}, nil)), newPodOf("a", orphaned, tracking)), nil, []string{
			"1 pods to adopt, 0 to release, 1 noted pods are not in the cache: reading them live", "  adopt a", "  look for those of pi",
			"1 pods active as wanted; 1 succeeded, 0 failed; reporting 1 pods active, 0 terminating",
			"  report pi: 1 active 1 ready 0 terminating, 1 succeeded 0 failed"}},
		"what was not adopted is not replaced": {observing(newJob(1, fresh), newPodOf("a", orphaned)), refused("adopt"), []string{
			"1 pods to adopt, 0 to release, 0 noted pods are not in the cache: reading them live", "  adopt a"}},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, strings.Join(played(plan(tc.of, noon), tc.answers), "\n"), strings.Join(tc.want, "\n"))
		})
	}
}

func tracking(p *corev1.Pod) { p.Finalizers = []string{batchv1.JobTrackingFinalizer} }

func TestAPlanRemembersWhatPodsTellOfFailures(t *testing.T) {
	for name, tc := range map[string]struct {
		of   observed
		want int
	}{
		"a failure":             {observing(newJob(2), newPodOf("a", just), newPodOf("b")), 1},
		"a success forgives":    {observing(newJob(2), newPodOf("a", broken), newPodOf("b", success)), 0},
		"one that is adopted":   {observing(newJob(2), newPodOf("a", just), newPodOf("b", just, func(p *corev1.Pod) { p.OwnerReferences = nil })), 2},
		"a finished Job's none": {observing(newJob(2, announced(batchv1.JobFailed, "", "")), newPodOf("a", just)), 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(tc.of, noon)
			if p.Note == nil {
				p = p.Then(act.Results{{Step: act.Adopt{}, Became: act.Done, Object: tc.of.claims.Adopt[0]}})
			}
			got := p.Note(nil).(remembered)
			check(t, got.job, types.UID("pi"))
			check(t, len(got.streak.failures), tc.want)
		})
	}
}

func TestThePlanOfAnOrphanSaysWhy(t *testing.T) {
	gone := metav1.NewTime(noon)
	for name, tc := range map[string]struct {
		of   orphan
		want string
	}{
		"it was counted":       {orphan{pod: newPodOf("p", untracked)}, "it has been counted"},
		"its Job may come":     {orphan{pod: newPodOf("p")}, "its Job is not in the cache: it keeps the finalizer until it is deleted"},
		"its Job is gone":      {orphan{pod: newPodOf("p", func(p *corev1.Pod) { p.DeletionTimestamp = &gone })}, "no Job will count it: removing the finalizer\n  patch p"},
		"its Job counts it":    {orphan{newPodOf("p"), newJob(1)}, "its Job counts it"},
		"nobody owns it":       {orphan{pod: newPodOf("p", func(p *corev1.Pod) { p.OwnerReferences = nil })}, "it has no owner that will count it: removing the finalizer\n  patch p\nit does not need to be counted any more"},
		"another kind owns it": {orphan{pod: newPodOf("p", func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "Other" })}, "its owner is no Job"},
	} {
		t.Run(name, func(t *testing.T) {
			check(t, strings.Join(played(planOrphan(tc.of, noon), nil), "\n"), tc.want)
		})
	}
}
