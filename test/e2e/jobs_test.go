package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// TestJobs is the story of a team that runs Jobs: some that succeed, one with a
// bug, one of whose indexes one fails, one with a leader; then very many at once.
// KCM_JOBS sets how many these are, 500 for the figures of the README.
func TestJobs(t *testing.T) {
	t.Parallel()
	many := 100
	if set := os.Getenv("KCM_JOBS"); set != "" {
		var err error
		if many, err = strconv.Atoi(set); err != nil {
			t.Fatalf("KCM_JOBS=%q: %v", set, err)
		}
	}
	c := newClusterWith(t, jobStages(t))
	c.manager(t, harness.BuiltBinary(t), "--leader-elect=false", "--kube-api-qps=1000", "--kube-api-burst=2000")
	c.nodes(t, 30)
	harness.Eventually(t, time.Minute, func(ctx context.Context) error {
		_, err := c.client.CoreV1().ServiceAccounts("default").Get(ctx, "default", metav1.GetOptions{})
		return err
	})
	for name, story := range map[string]struct {
		change func(*batchv1.Job)
		want   string
	}{
		"report": {func(*batchv1.Job) {}, "Complete CompletionsReached, 4 succeeded, 0 failed, "},
		"bug": {func(j *batchv1.Job) {
			annotate(j, "stages/exit-code", "42")
			j.Spec.Parallelism = ptr.To(int32(1))
			j.Spec.PodFailurePolicy = &batchv1.PodFailurePolicy{Rules: []batchv1.PodFailurePolicyRule{{Action: batchv1.PodFailurePolicyActionFailJob,
				OnExitCodes: &batchv1.PodFailurePolicyOnExitCodesRequirement{Operator: batchv1.PodFailurePolicyOnExitCodesOpIn, Values: []int32{42}}}}}
		}, "Failed PodFailurePolicy, 0 succeeded, 1 failed, "},
		"one-of-four": {func(j *batchv1.Job) {
			annotate(j, "stages/exit-code", "1")
			annotate(j, "stages/fails-index", "2")
			j.Spec.CompletionMode, j.Spec.BackoffLimitPerIndex = ptr.To(batchv1.IndexedCompletion), ptr.To(int32(0))
		}, "Failed FailedIndexes, 3 succeeded, 1 failed, 0,1,3"},
		"leader": {func(j *batchv1.Job) {
			j.Spec.CompletionMode, j.Spec.Parallelism = ptr.To(batchv1.IndexedCompletion), ptr.To(int32(1))
			j.Spec.SuccessPolicy = &batchv1.SuccessPolicy{Rules: []batchv1.SuccessPolicyRule{{SucceededIndexes: ptr.To("0")}}}
		}, "Complete SuccessPolicy, 1 succeeded, 0 failed, 0"},
	} {
		j := newJob(name)
		story.change(j)
		if _, err := c.client.BatchV1().Jobs("default").Create(t.Context(), j, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		harness.Eventually(t, 2*time.Minute, func(ctx context.Context) error {
			j, err := c.client.BatchV1().Jobs("default").Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if got := endOf(j); got != story.want {
				return fmt.Errorf("%s: got %q, want %q", name, got, story.want)
			}
			return nil
		})
	}
	c.runJobs(t, many)
	c.nothingTracked(t)
}

// jobStages say how pods of Jobs are played.
func jobStages(t *testing.T) string {
	t.Helper()
	stages, err := os.ReadFile("testdata/job-stages.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return string(stages)
}

// runJobs runs many Jobs of 4 pods at once.
func (c *cluster) runJobs(t *testing.T, many int) {
	errs := make([]error, many)
	workqueue.ParallelizeUntil(t.Context(), 16, many, func(i int) {
		_, errs[i] = c.client.BatchV1().Jobs("default").Create(t.Context(), newJob(fmt.Sprintf("many-%d", i)), metav1.CreateOptions{})
	})
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	harness.Eventually(t, 10*time.Minute, func(ctx context.Context) error {
		list, err := c.client.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ended := 0
		for i := range list.Items {
			j := &list.Items[i]
			if !strings.HasPrefix(j.Name, "many-") || endOf(j) == "" {
				continue
			}
			if got, want := endOf(j), "Complete CompletionsReached, 4 succeeded, 0 failed, "; got != want {
				t.Fatalf("%s: got %q, want %q", j.Name, got, want)
			}
			ended++
		}
		if ended < many {
			return fmt.Errorf("%d of %d Jobs have ended", ended, many)
		}
		return nil
	})
}

// nothingTracked checks that each Job has as many pods as it counted, without finalizers.
func (c *cluster) nothingTracked(t *testing.T) {
	pods, err := c.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	of := map[string]int{}
	for i := range pods.Items {
		p := &pods.Items[i]
		of[p.Labels[batchv1.JobNameLabel]]++
		if len(p.Finalizers) > 0 {
			t.Errorf("%s has finalizers %v", p.Name, p.Finalizers)
		}
	}
	for name, n := range of {
		if strings.HasPrefix(name, "many-") && n != 4 {
			t.Errorf("%s has %d pods", name, n)
		}
	}
}

func newJob(name string) *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: batchv1.JobSpec{Completions: ptr.To(int32(4)), Parallelism: ptr.To(int32(4)),
			Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever,
				Containers: []corev1.Container{{Name: "main", Image: "example.com/main:1"}}}}},
	}
}

func annotate(j *batchv1.Job, key, value string) {
	if j.Spec.Template.Annotations == nil {
		j.Spec.Template.Annotations = map[string]string{}
	}
	j.Spec.Template.Annotations[key] = value
}

// endOf says how a Job has ended; empty if it has not.
func endOf(j *batchv1.Job) string {
	i := slices.IndexFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed)
	})
	if i < 0 {
		return ""
	}
	end := j.Status.Conditions[i]
	return fmt.Sprintf("%s %s, %d succeeded, %d failed, %s", end.Type, end.Reason, j.Status.Succeeded, j.Status.Failed, j.Status.CompletedIndexes)
}
