package integration

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

func clientOf(t testing.TB, cp *harness.ControlPlane) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(cp.Admin)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// pretendKubelet runs the pods of the namespace default on one Ready node.
func pretendKubelet(t testing.TB, cp *harness.ControlPlane) {
	t.Helper()
	kubelet := harness.StartKubelet(t, cp.Admin)
	if err := kubelet.NodeReady(t.Context(), "node", "zone"); err != nil {
		t.Fatal(err)
	}
	kubelet.Serve("default", true)
}

func holder(ctx context.Context, client kubernetes.Interface) (string, error) {
	lease, err := client.CoordinationV1().Leases("kube-system").Get(ctx, "kube-controller-manager", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return "", err
	}
	return *lease.Spec.HolderIdentity, nil
}

// patient is for what happens within a second or two on a machine that is not busy.
const patient = time.Minute

func leads(t testing.TB, client kubernetes.Interface, not string) string {
	t.Helper()
	var leader string
	harness.Eventually(t, patient, func(ctx context.Context) error {
		var err error
		if leader, err = holder(ctx, client); err != nil {
			return err
		}
		if leader == "" || leader == not {
			return fmt.Errorf("the lease is held by %q", leader)
		}
		return nil
	})
	return leader
}

// acts makes a namespace and waits until a leader has given it its service account.
func acts(t testing.TB, client kubernetes.Interface, name string, within time.Duration) {
	t.Helper()
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, within, func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(name).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

func TestStandbyTakesOver(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	start := func(args ...string) *harness.Manager {
		return cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: append([]string{"--leader-elect=true"}, args...)})
	}
	// Others go by the lease as its holder wrote it.
	first := start("--leader-elect-lease-duration=60s", "--leader-elect-renew-deadline=40s")
	leader := leads(t, client, "")
	acts(t, client, "before", patient)
	second := start() // StartManager returned, so the standby is healthy and metered
	third := start()

	since := time.Now()
	first.Process().Signal(syscall.SIGTERM)
	<-first.Process().Exited() // or the first one would still act
	acts(t, client, "after-term", patient)
	took := time.Since(since)
	t.Logf("SIGTERM: a standby acted after %s", took.Round(time.Millisecond))
	// Without the release it would take the 60 s of the lease.
	if took > 30*time.Second {
		t.Errorf("a standby acted only %s after SIGTERM: was the lease not released?", took)
	}
	if code := first.Process().ExitCode(); code != 0 {
		t.Errorf("exit code %d after SIGTERM, want 0:\n%s", code, first.LogTail(0, 20))
	}
	leader = leads(t, client, leader)

	// Whichever of the two leads is killed; the other waits for the lease to run out.
	killed, left := second, third
	harness.Eventually(t, patient, func(context.Context) error {
		if err := servesAsLeader(second); err == nil {
			return nil
		} else if other := servesAsLeader(third); other != nil {
			return errors.Join(err, other)
		}
		killed, left = third, second
		return nil
	})
	since = time.Now()
	killed.Kill()
	acts(t, client, "after-kill", patient)
	t.Logf("SIGKILL: the standby acted after %s (lease of 15 s)", time.Since(since).Round(time.Millisecond))
	if next := leads(t, client, leader); next == leader {
		t.Errorf("the lease is still held by the killed process")
	}
	if err := left.Stop(); err != nil {
		t.Error(err)
	}
	if left, err := holder(t.Context(), client); err != nil || left != "" {
		t.Errorf("after the last one stopped, the lease is held by %q (%v), want nobody", left, err)
	}
}

// servesAsLeader fails unless the process serves the checks of a leader. A standby has that
// of the leader election only.
func servesAsLeader(m *harness.Manager) error {
	_, body, err := m.Get("/healthz?verbose")
	if err == nil && !strings.Contains(body, "deployment-controller") {
		err = errors.New("the process does not serve the checks of a leader")
	}
	return err
}

func TestLostLeaseEndsTheProcess(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	m := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{"--leader-elect=true",
		"--leader-elect-lease-duration=10s", "--leader-elect-renew-deadline=8s", "--leader-elect-retry-period=500ms"}})
	// Its lease may stand already, and the answer be under way still.
	harness.Eventually(t, patient, func(context.Context) error { return servesAsLeader(m) })
	cp.StopAPIServer()
	select {
	case <-m.Process().Exited():
	case <-time.After(patient):
		t.Fatal("still running long after the lease was lost")
	}
	if code := m.Process().ExitCode(); code <= 0 {
		t.Errorf("exit code %d, want non-zero", code)
	}
}

func TestAPIServerAwayFor20Seconds(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	client := clientOf(t, cp)
	// On a busy machine the API server takes longer to come back than it was away.
	m := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{"--leader-elect=true",
		"--leader-elect-lease-duration=5m", "--leader-elect-renew-deadline=4m"}})
	pretendKubelet(t, cp)
	leads(t, client, "")
	harness.CreateDeployment(t, client, "web", 20)
	harness.RolledOut(t, client, "web", 20, 3*patient)
	// In the middle of a roll-out: half of the work is still to do when the API goes.
	harness.SetImage(t, client, "web", "web:2")
	harness.Eventually(t, 3*patient, func(ctx context.Context) error {
		d, err := client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		if err == nil && d.Status.UpdatedReplicas < 3 {
			err = fmt.Errorf("%d updated", d.Status.UpdatedReplicas)
		}
		return err
	})
	stopped := time.Now()
	cp.StopAPIServer()
	away := time.NewTimer(20 * time.Second)
	defer away.Stop()
	select {
	case <-away.C:
	case <-m.Process().Exited():
		t.Fatalf("ended while the API server was away:\n%s", m.LogTail(0, 30))
	}
	if err := cp.StartAPIServer(); err != nil {
		t.Fatal(err)
	}
	back := time.Now()
	t.Logf("the API server was away for %s", back.Sub(stopped).Round(time.Second))
	if !m.Process().Running() {
		t.Fatalf("ended before the API server was back:\n%s", m.LogTail(0, 30))
	}
	acts(t, client, "after-outage", patient)
	t.Logf("acted %s after the API server was back", time.Since(back).Round(time.Millisecond))
	harness.Eventually(t, 3*patient, func(ctx context.Context) error {
		d, err := client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := d.Status; s.UpdatedReplicas != 20 || s.AvailableReplicas != 20 || s.Replicas != 20 || s.ObservedGeneration != d.Generation {
			return fmt.Errorf("status %+v", s)
		}
		return nil
	})
	if !m.Process().Running() {
		t.Error("the process ended")
	}
	harness.Eventually(t, patient, func(ctx context.Context) error {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err == nil && len(pods.Items) != 20 {
			err = fmt.Errorf("%d pods, want 20", len(pods.Items))
		}
		return err
	})
	// 20 pods of each revision: a pod made twice would be one create too many, also if it was deleted since.
	creates := 0
	for _, event := range cp.Audit.Since(0) {
		if event.Verb == "create" && event.ResponseStatus.Code == 201 && event.ObjectRef != nil && event.ObjectRef.Resource == "pods" && event.ObjectRef.Subresource == "" {
			creates++
		}
	}
	if creates == 0 || creates > 40 {
		t.Errorf("%d pods were created, want at most 40", creates)
	}
	t.Logf("%d pods were created for two revisions of 20", creates)
	if found := m.Misbehaviour(0); found != "" {
		t.Error(found)
	}
}
