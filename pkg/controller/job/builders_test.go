package job

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) metav1.Time { return metav1.NewTime(noon.Add(-d)) }

func check[T comparable](t *testing.T, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("got %v, want %v", got, want)
	}
}

type jobOption func(*batchv1.Job)

// newJob wants so many completions with as many pods at a time. It started an hour ago.
func newJob(completions int32, options ...jobOption) *batchv1.Job {
	labels := map[string]string{"job": "pi"}
	j := &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pi", UID: "pi", Generation: 1, ResourceVersion: "1"},
		Spec: batchv1.JobSpec{
			Completions: &completions, Parallelism: ptr.To(completions), BackoffLimit: ptr.To(int32(6)),
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "main"}}}},
		},
		Status: batchv1.JobStatus{StartTime: ptr.To(ago(time.Hour)), Ready: ptr.To(int32(0)), Terminating: ptr.To(int32(0)),
			UncountedTerminatedPods: &batchv1.UncountedTerminatedPods{}},
	}
	for _, o := range options {
		o(j)
	}
	return j
}

func fresh(j *batchv1.Job)         { j.Status = batchv1.JobStatus{} }
func indexedMode(j *batchv1.Job)   { j.Spec.CompletionMode = ptr.To(batchv1.IndexedCompletion) }
func workQueue(j *batchv1.Job)     { j.Spec.Completions = nil }
func suspend(j *batchv1.Job)       { j.Spec.Suspend = ptr.To(true) }
func leaving(j *batchv1.Job)       { j.DeletionTimestamp = ptr.To(ago(0)) }
func replaceFailed(j *batchv1.Job) { j.Spec.PodReplacementPolicy = ptr.To(batchv1.Failed) }

func parallel(n int32) jobOption { return func(j *batchv1.Job) { j.Spec.Parallelism = &n } }
func limit(n int32) jobOption    { return func(j *batchv1.Job) { j.Spec.BackoffLimit = &n } }
func limitPerIndex(n int32) jobOption {
	return func(j *batchv1.Job) { indexedMode(j); j.Spec.BackoffLimitPerIndex = &n }
}
func maxFailed(n int32) jobOption { return func(j *batchv1.Job) { j.Spec.MaxFailedIndexes = &n } }
func deadline(n int64) jobOption  { return func(j *batchv1.Job) { j.Spec.ActiveDeadlineSeconds = &n } }
func rules(rules ...batchv1.PodFailurePolicyRule) jobOption {
	return func(j *batchv1.Job) {
		j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: rules}
		replaceFailed(j)
	}
}
func successRules(rules ...batchv1.SuccessPolicyRule) jobOption {
	return func(j *batchv1.Job) { indexedMode(j); j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: rules} }
}
func counted(succeeded, failed int32) jobOption {
	return func(j *batchv1.Job) { j.Status.Succeeded, j.Status.Failed = succeeded, failed }
}
func noted(succeeded, failed []types.UID) jobOption {
	return func(j *batchv1.Job) {
		j.Status.UncountedTerminatedPods = &batchv1.UncountedTerminatedPods{Succeeded: succeeded, Failed: failed}
	}
}
func doneIndexes(text string) jobOption {
	return func(j *batchv1.Job) {
		j.Status.CompletedIndexes = text
		j.Status.Succeeded = int32(parseIndexes(text, 1<<20).total())
	}
}
func givenIndexes(text string) jobOption {
	return func(j *batchv1.Job) { j.Status.FailedIndexes = &text }
}
func announced(kind batchv1.JobConditionType, reason, message string) jobOption {
	return func(j *batchv1.Job) {
		j.Status.Conditions = append(j.Status.Conditions, condition(kind, corev1.ConditionTrue, reason, message, noon))
	}
}

type podOption func(*corev1.Pod)

// newPodOf is a running, ready pod of the Job on a node, an hour old.
func newPodOf(name string, options ...podOption) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), ResourceVersion: "1", CreationTimestamp: ago(time.Hour),
			Labels: map[string]string{"job": "pi"}, Annotations: map[string]string{}, Finalizers: []string{batchv1.JobTrackingFinalizer},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "pi", UID: "pi", Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{NodeName: "n"},
		Status: corev1.PodStatus{Phase: corev1.PodRunning,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(time.Hour)}}},
	}
	for _, o := range options {
		o(p)
	}
	return p
}

func some(n int, options ...podOption) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range n {
		all = append(all, newPodOf(fmt.Sprintf("p%d", i), options...))
	}
	return all
}

func ended(phase corev1.PodPhase, code int32, at time.Duration) podOption {
	return func(p *corev1.Pod) {
		p.Status.Phase = phase
		p.Status.Conditions = nil
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{ExitCode: code, FinishedAt: ago(at)}}}}
	}
}

var (
	success = ended(corev1.PodSucceeded, 0, time.Minute)
	broken  = ended(corev1.PodFailed, 1, time.Hour)
	just    = ended(corev1.PodFailed, 1, 0)
)

func failedWith(code int32) podOption { return ended(corev1.PodFailed, code, time.Hour) }
func index(i int) podOption {
	return func(p *corev1.Pod) { p.Annotations[batchv1.JobCompletionIndexAnnotation] = strconv.Itoa(i) }
}
func failures(counted, ignored int) podOption {
	return func(p *corev1.Pod) {
		p.Annotations[batchv1.JobIndexFailureCountAnnotation] = strconv.Itoa(counted)
		if ignored > 0 {
			p.Annotations[batchv1.JobIndexIgnoredFailureCountAnnotation] = strconv.Itoa(ignored)
		}
	}
}
func untracked(p *corev1.Pod) { p.Finalizers = nil }
func goingAway(p *corev1.Pod) {
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = ptr.To(ago(-30*time.Second)), ptr.To(int64(30))
}
func unready(p *corev1.Pod)  { p.Status.Conditions = nil }
func orphaned(p *corev1.Pod) { p.OwnerReferences = nil; p.Finalizers = nil }
func with(kind corev1.PodConditionType) podOption {
	return func(p *corev1.Pod) {
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: kind, Status: corev1.ConditionTrue})
	}
}
func restarted(n int32) podOption {
	return func(p *corev1.Pod) {
		p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "main", RestartCount: n}}
	}
}

// sidecarEnded is an init container that runs along, and ended so long ago.
func sidecarEnded(at time.Duration) podOption {
	return func(p *corev1.Pod) {
		sidecarRuns(p)
		initEnded(at)(p)
	}
}

func sidecarRuns(p *corev1.Pod) {
	p.Spec.InitContainers = []corev1.Container{{Name: "along", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "along", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

func initEnded(at time.Duration) podOption {
	return func(p *corev1.Pod) {
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "along", State: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{FinishedAt: ago(at)}}}}
	}
}

func unreadySince(at time.Duration) podOption {
	return func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: ago(at)}}
	}
}

func exit(action batchv1.PodFailurePolicyAction, operator batchv1.PodFailurePolicyOnExitCodesOperator, codes ...int32) batchv1.PodFailurePolicyRule {
	return batchv1.PodFailurePolicyRule{Action: action, OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{
		ContainerName: ptr.To("main"), Operator: operator, Values: codes}}
}

func onCondition(action batchv1.PodFailurePolicyAction, kind corev1.PodConditionType) batchv1.PodFailurePolicyRule {
	return batchv1.PodFailurePolicyRule{Action: action, OnPodConditions: []batchv1.PodFailurePolicyOnPodConditionsPattern{{Type: kind, Status: corev1.ConditionTrue}}}
}

const (
	failJob   = batchv1.PodFailurePolicyActionFailJob
	failIndex = batchv1.PodFailurePolicyActionFailIndex
	ignore    = batchv1.PodFailurePolicyActionIgnore
	countIt   = batchv1.PodFailurePolicyActionCount
	in        = batchv1.PodFailurePolicyOnExitCodesOpIn
	notIn     = batchv1.PodFailurePolicyOnExitCodesOpNotIn
)
