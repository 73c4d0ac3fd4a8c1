package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// minutely is a CronJob whose Jobs the test itself finishes, in the place of a
// job controller.
func minutely() *batchv1.CronJob {
	return &batchv1.CronJob{
		ObjectMeta: metav1.ObjectMeta{Name: "backup"},
		Spec: batchv1.CronJobSpec{
			Schedule: "* * * * *", TimeZone: ptr.To("Asia/Kolkata"), ConcurrencyPolicy: batchv1.ForbidConcurrent,
			JobTemplate: batchv1.JobTemplateSpec{Spec: batchv1.JobSpec{
				ManagedBy: ptr.To("example.com/test"), TTLSecondsAfterFinished: ptr.To(int32(1)),
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "example.com/backup:1"}}}},
			}},
		},
	}
}

// TestBackupEveryMinute is what a user of CronJobs sees: a start that was missed
// is made up for once, also when the manager is killed meanwhile; while the Job
// runs there is no other; when it has ended it goes by itself; and the next comes
// with the next minute.
func TestBackupEveryMinute(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	manager := c.manager(t, harness.BuiltBinary(t), "--leader-elect=false")
	c.nodes(t, 2)
	must(t)(c.client.BatchV1().CronJobs("default").Create(t.Context(), minutely(), metav1.CreateOptions{}))
	c.missed(t, 5*time.Minute)
	first := c.runs(t, "")
	manager.Kill()
	c.manager(t, harness.BuiltBinary(t), "--leader-elect=false")
	harness.Eventually(t, 2*time.Minute, func(ctx context.Context) error { return c.forbidden(ctx) })
	if again := c.runs(t, ""); again.UID != first.UID {
		t.Fatalf("%s runs beside or in place of %s", again.Name, first.Name)
	}
	c.finish(t, first)
	second := c.runs(t, first.Name)
	c.gone(t, first)
	at, err := time.Parse(time.RFC3339, second.Annotations[batchv1.CronJobScheduledTimestampAnnotation])
	if err != nil || !strings.HasSuffix(second.Annotations[batchv1.CronJobScheduledTimestampAnnotation], "+05:30") {
		t.Errorf("scheduled at %s, %v", second.Annotations[batchv1.CronJobScheduledTimestampAnnotation], err)
	}
	if want := fmt.Sprintf("backup-%d", at.Unix()/60); second.Name != want || second.CreationTimestamp.Time.Before(at) {
		t.Errorf("%s was created at %s for %s", second.Name, second.CreationTimestamp, at)
	}
	c.finish(t, second)
	harness.Eventually(t, 2*time.Minute, func(ctx context.Context) error {
		cron, err := c.client.BatchV1().CronJobs("default").Get(ctx, "backup", metav1.GetOptions{})
		if err == nil && cron.Status.LastSuccessfulTime == nil {
			err = errors.New("no success is known")
		}
		return err
	})
	c.annotated(t)
}

// missed makes it look as if the last start was that long ago.
func (c *cluster) missed(t *testing.T, ago time.Duration) {
	t.Helper()
	harness.Eventually(t, time.Minute, func(ctx context.Context) error {
		cron, err := c.client.BatchV1().CronJobs("default").Get(ctx, "backup", metav1.GetOptions{})
		if err != nil {
			return err
		}
		cron.Status.LastScheduleTime = &metav1.Time{Time: time.Now().Add(-ago)}
		_, err = c.client.BatchV1().CronJobs("default").UpdateStatus(ctx, cron, metav1.UpdateOptions{})
		return err
	})
}

// runs waits for the one Job that runs, which is not the other.
func (c *cluster) runs(t *testing.T, other string) *batchv1.Job {
	t.Helper()
	var found *batchv1.Job
	harness.Eventually(t, 3*time.Minute, func(ctx context.Context) error {
		list, err := c.client.BatchV1().Jobs("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var running []*batchv1.Job
		for i := range list.Items {
			if job := &list.Items[i]; job.Name != other && len(job.Status.Conditions) == 0 {
				running = append(running, job)
			}
		}
		if len(running) > 1 {
			t.Fatalf("%d jobs run", len(running))
		}
		if len(running) == 0 {
			return errors.New("no job runs")
		}
		found = running[0]
		cron, err := c.client.BatchV1().CronJobs("default").Get(ctx, "backup", metav1.GetOptions{})
		if err == nil && (len(cron.Status.Active) != 1 || cron.Status.Active[0].UID != found.UID) {
			err = fmt.Errorf("%s runs, and the status lists %v", found.Name, cron.Status.Active)
		}
		return err
	})
	return found
}

// forbidden waits for a time of the schedule at which a Job runs already.
func (c *cluster) forbidden(ctx context.Context) error {
	events, err := c.client.CoreV1().Events("default").List(ctx, metav1.ListOptions{FieldSelector: "reason=JobAlreadyActive"})
	if err == nil && len(events.Items) == 0 {
		err = errors.New("no start was held back")
	}
	return err
}

// finish does what a job controller does at the end of a Job.
func (c *cluster) finish(t *testing.T, job *batchv1.Job) {
	t.Helper()
	now := metav1.Now()
	job.Status.StartTime, job.Status.CompletionTime = &job.CreationTimestamp, &now
	for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now, LastProbeTime: now})
	}
	must(t)(c.client.BatchV1().Jobs("default").UpdateStatus(t.Context(), job, metav1.UpdateOptions{}))
}

// gone waits for the end of a Job's time to live.
func (c *cluster) gone(t *testing.T, job *batchv1.Job) {
	t.Helper()
	harness.Eventually(t, time.Minute, func(ctx context.Context) error {
		_, err := c.client.BatchV1().Jobs("default").Get(ctx, job.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s is there: %w", job.Name, err)
	})
}

// annotated checks that every kubelet is told how long it may keep what it has read.
func (c *cluster) annotated(t *testing.T) {
	t.Helper()
	harness.Eventually(t, time.Minute, func(ctx context.Context) error {
		nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range nodes.Items {
			if has := nodes.Items[i].Annotations[corev1.ObjectTTLAnnotationKey]; has != "0" {
				return fmt.Errorf("%s says %q", nodes.Items[i].Name, has)
			}
		}
		return nil
	})
}
