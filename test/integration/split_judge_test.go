package integration

import (
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// splitStage is a time in which ours ran these controllers.
type splitStage struct {
	moved    []string
	from, to time.Time
}

// judge fails if a pod was made too often, or something was lost.
func (c *rolling) judge(t *testing.T) {
	t.Helper()
	jobs, err := c.client.BatchV1().Jobs("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	sets, err := c.client.AppsV1().ReplicaSets("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	pods, err := c.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.Logf("%d rollouts of %d pods, %d Jobs of %d", c.rolled, rollingPods, c.made, jobPods)
	owners := map[types.UID]bool{}
	for _, job := range jobs.Items {
		owners[job.UID] = true
		if job.Status.Succeeded != jobPods || job.Status.Failed != 0 || c.created[job.UID] != jobPods {
			t.Errorf("%s: %d pods were created, %d succeeded, %d failed", job.Name, c.created[job.UID], job.Status.Succeeded, job.Status.Failed)
		}
	}
	for _, set := range sets.Items {
		owners[set.UID] = true
		if c.created[set.UID] != rollingPods {
			t.Errorf("%d pods were created for %s", c.created[set.UID], set.Name)
		}
	}
	if len(jobs.Items) != c.made || len(sets.Items) != c.rolled {
		t.Errorf("%d of %d Jobs are there, and %d of %d ReplicaSets", len(jobs.Items), c.made, len(sets.Items), c.rolled)
	}
	if c.most > rollingPods+rollingSurge {
		t.Errorf("%d pods were asked for at a time", c.most)
	}
	running := 0
	for _, pod := range pods.Items {
		owner := metav1.GetControllerOf(&pod)
		if owner == nil || !owners[owner.UID] {
			t.Errorf("pod %s belongs to nobody", pod.Name)
		}
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			running++
		}
		if slices.Contains(pod.Finalizers, batchv1.JobTrackingFinalizer) {
			t.Errorf("pod %s is not counted", pod.Name)
		}
	}
	if running != rollingPods {
		t.Errorf("%d pods run", running)
	}
}

// splitWrite is a write of a controller by one of the two programs.
type splitWrite struct {
	harness.AuditEvent
	account, by string
}

// judgeWriters fails if a controller was not run by the one program that a stage gives it
// to, or if one program wrote again for it when the other had begun.
func judgeWriters(t *testing.T, log *harness.AuditLog, stages []splitStage) {
	t.Helper()
	byAccount := map[string][]splitWrite{}
	for _, w := range writesOf(log) {
		byAccount[w.account] = append(byAccount[w.account], w)
	}
	for _, account := range []string{"deployment-controller", "replicaset-controller", "job-controller", "tokens-controller"} {
		if got := turns(byAccount[account]); !slices.Equal(got, []string{theirs, ours, theirs}) {
			t.Errorf("for %s wrote %q, one after the other", account, got)
		}
	}
	for account, writes := range byAccount {
		if got := turns(writes); len(got) > 3 {
			t.Errorf("for %s wrote %q, one after the other", account, got)
		}
		for _, w := range writes {
			for _, stage := range stages {
				if w.Received.Before(stage.from) || w.Received.After(stage.to) {
					continue
				}
				if want := stage.writer(account); w.by != want {
					t.Errorf("while ours runs %q, %s wrote: %s", stage.moved, w.by, w.AuditEvent)
				}
			}
		}
	}
}

// writer is the program that runs the controllers of an account.
func (s splitStage) writer(account string) string {
	for _, c := range app.Controllers() {
		if c.Account == account && (slices.Contains(s.moved, c.Name) || slices.Contains(s.moved, "all")) {
			return ours
		}
	}
	return theirs
}

// writesOf are the writes of controllers in their order, but for events.
func writesOf(log *harness.AuditLog) []splitWrite {
	var writes []splitWrite
	for _, event := range log.Since(0) {
		if !event.Write() || event.ObjectRef == nil || event.ObjectRef.Resource == "events" || event.ObjectRef.Resource == "leases" {
			continue
		}
		w := splitWrite{AuditEvent: event, account: event.Controller()}
		w.by, _, _ = strings.Cut(event.UserAgent, "/")
		if event.User.Username == "system:kube-controller-manager" {
			// The process itself makes the accounts of its controllers; all else is of this one.
			if event.ObjectRef.Resource == "serviceaccounts" {
				continue
			}
			w.account = "tokens-controller"
		}
		writes = append(writes, w)
	}
	slices.SortFunc(writes, func(a, b splitWrite) int { return a.Received.Compare(b.Received) })
	return writes
}

// turns are the programs that wrote, each as often as it began.
func turns(writes []splitWrite) []string {
	var all []string
	for _, w := range writes {
		all = append(all, w.by)
	}
	return slices.Compact(all)
}
