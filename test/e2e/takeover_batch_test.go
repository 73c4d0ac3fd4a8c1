package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// runsOn is the annotation of pods of Jobs that do not end.
const runsOn = "stages/runs-on"

// furnishBatch makes a CronJob whose Job runs, one that is suspended, and Jobs
// that have succeeded, failed, run, and wait.
func (c *cluster) furnishBatch(t *testing.T) {
	backup, held := minutely(), minutely()
	for _, cron := range []*batchv1.CronJob{backup, held} {
		cron.Spec.Schedule = "0 0 1 1 *" // no new year comes while this runs
		spec := &cron.Spec.JobTemplate.Spec
		spec.ManagedBy, spec.TTLSecondsAfterFinished = nil, nil
		spec.Template.Annotations = map[string]string{runsOn: "true"}
	}
	held.Name, held.Spec.Suspend = "held", new(true)
	must(t)(c.client.BatchV1().CronJobs("default").Create(t.Context(), held, metav1.CreateOptions{}))
	must(t)(c.client.BatchV1().CronJobs("default").Create(t.Context(), backup, metav1.CreateOptions{}))
	c.missed(t, 2*366*24*time.Hour)
	started := c.runs(t, "")
	c.jobIs(t, started.Name, "[]: 1 active, 1 ready, 0 succeeded, 0 failed")

	for _, story := range []struct {
		name, state string
		change      func(*batchv1.Job)
	}{
		{"done", "[SuccessCriteriaMet Complete]: 0 active, 0 ready, 4 succeeded, 0 failed", func(j *batchv1.Job) {
			j.Spec.CompletionMode, j.Spec.TTLSecondsAfterFinished = new(batchv1.IndexedCompletion), new(int32(24*3600))
		}},
		{"broken", "[FailureTarget Failed]: 0 active, 0 ready, 0 succeeded, 1 failed", func(j *batchv1.Job) {
			annotate(j, "stages/exit-code", "1")
			j.Spec.Parallelism, j.Spec.BackoffLimit = new(int32(1)), new(int32(0))
		}},
		{"busy", "[]: 4 active, 4 ready, 0 succeeded, 0 failed", func(j *batchv1.Job) {
			annotate(j, runsOn, "true")
			j.Spec.CompletionMode, j.Spec.ActiveDeadlineSeconds = new(batchv1.IndexedCompletion), new(int64(24*3600))
		}},
		{"later", "[Suspended]: 0 active, 0 ready, 0 succeeded, 0 failed", func(j *batchv1.Job) { j.Spec.Suspend = new(true) }},
	} {
		j := newJob(story.name)
		story.change(j)
		must(t)(c.client.BatchV1().Jobs("default").Create(t.Context(), j, metav1.CreateOptions{}))
		c.jobIs(t, story.name, story.state)
	}
}

// jobIs waits until the Job's conditions and numbers are these.
func (c *cluster) jobIs(t *testing.T, name, state string) {
	t.Helper()
	harness.Eventually(t, 2*time.Minute, func(ctx context.Context) error {
		j, err := c.client.BatchV1().Jobs("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		is, s := []batchv1.JobConditionType{}, j.Status
		for _, condition := range s.Conditions {
			if condition.Status == corev1.ConditionTrue {
				is = append(is, condition.Type)
			}
		}
		ready := int32(0)
		if s.Ready != nil {
			ready = *s.Ready
		}
		if got := fmt.Sprintf("%s: %d active, %d ready, %d succeeded, %d failed", is, s.Active, ready, s.Succeeded, s.Failed); got != state {
			return fmt.Errorf("job %s is %s, wanted %s", name, got, state)
		}
		return nil
	})
}

// furnishBudgets makes budgets for a Deployment, a StatefulSet, for DaemonSets,
// of whose pods there is no share, as their kind has no scale, and for nobody.
func (c *cluster) furnishBudgets(t *testing.T) {
	one, share := intstr.FromInt32(1), intstr.FromString("40%")
	for name, wanted := range map[string]struct {
		spec    policyv1.PodDisruptionBudgetSpec
		allowed int32
		reason  string
	}{
		"rolled": {policyv1.PodDisruptionBudgetSpec{MinAvailable: &one}, 1, policyv1.SufficientPodsReason},
		"db":     {policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &share}, 2, policyv1.SufficientPodsReason},
		"agent":  {policyv1.PodDisruptionBudgetSpec{MinAvailable: &one}, 3, policyv1.SufficientPodsReason},
		"manual": {policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &share}, 0, policyv1.SyncFailedReason},
		"nobody": {policyv1.PodDisruptionBudgetSpec{MaxUnavailable: &one}, 0, policyv1.InsufficientPodsReason},
	} {
		wanted.spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}}
		must(t)(c.client.PolicyV1().PodDisruptionBudgets("default").Create(t.Context(),
			&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: wanted.spec}, metav1.CreateOptions{}))
		harness.Eventually(t, 2*time.Minute, func(ctx context.Context) error {
			b, err := c.client.PolicyV1().PodDisruptionBudgets("default").Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if s := b.Status; s.DisruptionsAllowed != wanted.allowed || len(s.Conditions) != 1 || s.Conditions[0].Reason != wanted.reason {
				return fmt.Errorf("budget %s: status %+v", name, s)
			}
			return nil
		})
	}
}

// repeats tells of a write of the original that changes nothing: at its start it
// says again of a budget that it cannot compute it, and of a node which volumes
// are attached to it.
func repeats(write harness.AuditEvent) bool {
	return write.ObjectRef.Resource == "poddisruptionbudgets" && write.ObjectRef.Name == "manual" ||
		write.ObjectRef.Resource == "nodes" && write.ObjectRef.Subresource == "status" && write.Controller() == "attachdetach-controller"
}

// budgets are the versions of all budgets.
func (c *cluster) budgets(t *testing.T) string {
	t.Helper()
	list, err := c.client.PolicyV1().PodDisruptionBudgets("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, b := range list.Items {
		lines = append(lines, b.Name+" "+b.ResourceVersion)
	}
	return strings.Join(lines, "\n")
}
