package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const (
	// faulty is how long requests are refused, lost, cut and stalled.
	faulty = time.Minute
	// faultShare is how many of them.
	faultShare = 0.15
	// setsUnderFaults is how many ReplicaSets, and how many Jobs, there are.
	setsUnderFaults = 10
	// replicasUnderFaults is how many pods each may have at a time.
	replicasUnderFaults = 4
)

// TestFaultsForAMinute has requests refused, delayed, stalled, cut and their
// answers lost at random, while pods are taken away all the time. There must
// never be a pod too many, and nothing may be stuck afterwards.
func TestFaultsForAMinute(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	kubelet := harness.StartKubelet(t, cp.Admin)
	for n := range 3 {
		if err := kubelet.NodeReady(t.Context(), fmt.Sprintf("node-%d", n), ""); err != nil {
			t.Fatal(err)
		}
	}
	kubelet.Serve("default", true)
	proxy := cp.StartProxy(t)
	manager := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Kubeconfig: proxy.Kubeconfig, Args: []string{
		"--controllers=replicaset-controller,job-controller,daemonset-controller,serviceaccount-controller"}})

	limits := &limits{active: map[string]map[string]bool{}, most: map[string]int{}}
	watchPods(t, client, "default", func(ctx context.Context, pod *corev1.Pod, _ bool) {
		limits.saw(pod)
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && pod.Spec.RestartPolicy == corev1.RestartPolicyNever {
			_ = kubelet.FinishPod(ctx, "default", pod.Name, harness.Outcome{Phase: corev1.PodSucceeded})
		}
	})
	makeFaultyWork(t, client)
	harness.Eventually(t, patient, func(ctx context.Context) error { return ready(ctx, client, replicasUnderFaults) })

	proxy.Disturb(harness.RandomFaults(1, faultShare))
	disturbed, end := context.WithTimeout(t.Context(), faulty)
	defer end()
	taken := takePodsAway(disturbed, client)
	proxy.Disturb(nil)
	t.Logf("%d requests went wrong, %d pods were taken away", proxy.Hit(), taken)
	if proxy.Hit() < 100 || taken < 30 {
		t.Error("the faults did not disturb: too few to show anything")
	}

	// Who still waits for something that did not happen does not follow a change.
	harness.Eventually(t, 2*time.Minute, func(ctx context.Context) error { return ready(ctx, client, replicasUnderFaults) })
	limits.check(t)
	for i := range setsUnderFaults {
		if _, err := client.AppsV1().ReplicaSets("default").Patch(t.Context(), fmt.Sprintf("rs-%d", i), types.MergePatchType,
			[]byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	harness.Eventually(t, patient, func(ctx context.Context) error { return ready(ctx, client, 1) })
	nothingWaits(t, manager)
}

// limits knows how many pods of each owner were active at once.
type limits struct {
	mu     sync.Mutex
	active map[string]map[string]bool
	most   map[string]int
}

func (l *limits) saw(pod *corev1.Pod) {
	owner := metav1.GetControllerOf(pod)
	if owner == nil {
		return
	}
	of := owner.Kind + "/" + owner.Name
	if owner.Kind == "DaemonSet" {
		of = place(pod)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.active[of] == nil {
		l.active[of] = map[string]bool{}
	}
	if pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		delete(l.active[of], pod.Name)
	} else {
		l.active[of][pod.Name] = true
	}
	l.most[of] = max(l.most[of], len(l.active[of]))
}

func (l *limits) check(t *testing.T) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for of, most := range l.most {
		allowed := replicasUnderFaults
		if strings.HasPrefix(of, "DaemonSet") {
			allowed = 1
		}
		if most > allowed {
			t.Errorf("%s had %d pods at once, wants %d", of, most, allowed)
		}
	}
}

func makeFaultyWork(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	for i := range setsUnderFaults {
		app := fmt.Sprintf("rs-%d", i)
		template := workTemplate(app, "web:1")
		template.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
		if _, err := client.AppsV1().ReplicaSets("default").Create(t.Context(), &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: app},
			Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](replicasUnderFaults), Template: template,
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		task := workTemplate("job", "job:1")
		task.Labels, task.Spec.RestartPolicy = nil, corev1.RestartPolicyNever
		if _, err := client.BatchV1().Jobs("default").Create(t.Context(), &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("job-%d", i)},
			Spec: batchv1.JobSpec{Completions: ptr.To[int32](60), Parallelism: ptr.To[int32](replicasUnderFaults), Template: task}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	agent := workTemplate("agent", "agent:1")
	agent.Spec.TerminationGracePeriodSeconds = ptr.To[int64](0)
	if _, err := client.AppsV1().DaemonSets("default").Create(t.Context(), &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "agent"},
		Spec: appsv1.DaemonSetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}}, Template: agent}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// ready fails until every ReplicaSet has that many ready pods.
func ready(ctx context.Context, client kubernetes.Interface, replicas int32) error {
	sets, err := client.AppsV1().ReplicaSets("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, set := range sets.Items {
		if set.Status.ReadyReplicas != replicas || set.Status.Replicas != replicas || set.Status.ObservedGeneration != set.Generation {
			return fmt.Errorf("%s has %d of %d pods ready", set.Name, set.Status.ReadyReplicas, set.Status.Replicas)
		}
	}
	daemons, err := client.AppsV1().DaemonSets("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, set := range daemons.Items {
		if set.Status.NumberReady != 3 || set.Status.CurrentNumberScheduled != 3 {
			return fmt.Errorf("%s has %d pods ready", set.Name, set.Status.NumberReady)
		}
	}
	return nil
}

// takePodsAway deletes a running pod three times a second until ctx ends.
func takePodsAway(ctx context.Context, client kubernetes.Interface) (taken int) {
	ticker := time.NewTicker(300 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return taken
		case <-ticker.C:
		}
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: "app"})
		if err != nil || len(pods.Items) == 0 {
			continue
		}
		pod := pods.Items[taken*7%len(pods.Items)]
		if client.CoreV1().Pods("default").Delete(ctx, pod.Name, metav1.DeleteOptions{}) == nil {
			taken++
		}
	}
}

// nothingWaits fails when a controller holds a key back.
func nothingWaits(t *testing.T, manager *harness.Manager) {
	t.Helper()
	for _, name := range []string{"replicaset-controller", "job-controller", "daemonset-controller"} {
		harness.Eventually(t, patient, func(context.Context) error {
			code, body, err := manager.GetAsAdmin("/debug/controllers/" + name)
			if err != nil || code != http.StatusOK {
				return fmt.Errorf("the debug page of %s: %d %w", name, code, err)
			}
			if !strings.Contains(body, `"waitingForCaches": []`) {
				var shown any
				_ = json.Unmarshal([]byte(body), &shown)
				return fmt.Errorf("%s waits: %v", name, shown)
			}
			return nil
		})
	}
}

// TestAStoppedLeaderWritesNothing stops a leader in the middle of its work until
// another leads, and lets it go on.
func TestAStoppedLeaderWritesNothing(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	args := []string{"--leader-elect=true", "--leader-elect-lease-duration=10s", "--leader-elect-renew-deadline=8s", "--leader-elect-retry-period=1s",
		"--controllers=replicaset-controller,serviceaccount-controller", "--kube-api-qps=20", "--kube-api-burst=20"}
	proxy := cp.StartProxy(t)
	first := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Kubeconfig: proxy.Kubeconfig, Args: args})
	leader := leads(t, client, "")
	cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: args})
	acts(t, client, "before", patient)
	if _, err := client.AppsV1().ReplicaSets("before").Create(t.Context(), &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Name: "big"},
		Spec: appsv1.ReplicaSetSpec{Replicas: ptr.To[int32](300), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "big"}},
			Template: workTemplate("big", "web:1")}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	pods := func(ctx context.Context) (int, error) {
		list, err := client.CoreV1().Pods("before").List(ctx, metav1.ListOptions{})
		if err != nil {
			return 0, err
		}
		return len(list.Items), nil
	}
	harness.Eventually(t, patient, func(ctx context.Context) error {
		if n, err := pods(ctx); err != nil || n < 30 {
			return fmt.Errorf("%d pods, %w", n, err)
		}
		return nil
	})
	if !first.Process().Running() {
		t.Fatalf("it ended before it was stopped:\n%s", first.LogTail(0, 20))
	}
	first.Process().Signal(syscall.SIGSTOP)
	leads(t, client, leader)
	acts(t, client, "after", patient)
	before := len(proxy.Writes())
	since := time.Now()
	first.Process().Signal(syscall.SIGCONT)
	select {
	case <-first.Process().Exited():
	case <-time.After(patient):
		t.Fatal("the process goes on although another leads")
	}
	took := time.Since(since)
	t.Logf("ended after %s", took.Round(time.Millisecond))
	if took > 5*time.Second {
		t.Errorf("ended only %s after it went on", took)
	}
	if code := first.Process().ExitCode(); code == 0 {
		t.Error("a lost lease ends with code 0")
	}
	if late := proxy.Writes()[before:]; len(late) > 0 {
		t.Errorf("writes after another led: %v", late)
	}
	harness.Eventually(t, patient, func(ctx context.Context) error {
		if n, err := pods(ctx); err != nil || n != 300 {
			return fmt.Errorf("%d pods, %w", n, err)
		}
		return nil
	})
}
