package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// rejecting is how many pods each owner wants, and how many nodes there are.
const rejecting = 10

// rejectedOwner is a workload whose pods are all rejected.
type rejectedOwner struct {
	kind   string
	create func(ctx context.Context, client kubernetes.Interface, namespace string) error
	status func(ctx context.Context, client kubernetes.Interface, namespace string) (any, error)
	// least is how many pods are made in the end, most how many at most in such a time.
	least int
	most  func(time.Duration) int
}

// steps is how often a wait of 10 s, 20 s, 40 s and so on ends in such a time.
func steps(in time.Duration) (n int) {
	for at, delay := time.Duration(0), 10*time.Second; at+delay <= in; n++ {
		at += delay
		delay = min(2*delay, 5*time.Minute)
	}
	return n
}

// rounds is what a ReplicaSet makes: all, all again, and then each time half as many.
func rounds(in time.Duration) int {
	n, size := 2*rejecting, rejecting
	for range steps(in) {
		size = (size + 1) / 2
		n += size
	}
	return n
}

func rejectedOwners() []rejectedOwner {
	meta := metav1.ObjectMeta{Name: "web"}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	template := workTemplate("web", "web:1")
	task := workTemplate("web", "web:1")
	task.Spec.RestartPolicy = corev1.RestartPolicyNever
	create, get := metav1.CreateOptions{}, metav1.GetOptions{}
	places := func(in time.Duration) int { return rejecting * (2 + steps(in)) }
	return []rejectedOwner{
		{"ReplicaSet", func(ctx context.Context, c kubernetes.Interface, in string) error {
			_, err := c.AppsV1().ReplicaSets(in).Create(ctx, &appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{
				Replicas: ptr.To[int32](rejecting), Selector: selector, Template: template}}, create)
			return err
		}, func(ctx context.Context, c kubernetes.Interface, in string) (any, error) {
			o, err := c.AppsV1().ReplicaSets(in).Get(ctx, "web", get)
			return o.Status.Conditions, err
		}, 2 * rejecting, rounds},
		{"StatefulSet", func(ctx context.Context, c kubernetes.Interface, in string) error {
			_, err := c.AppsV1().StatefulSets(in).Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta, Spec: appsv1.StatefulSetSpec{
				Replicas: ptr.To[int32](rejecting), Selector: selector, Template: template, ServiceName: "web", PodManagementPolicy: appsv1.ParallelPodManagement}}, create)
			return err
		}, func(ctx context.Context, c kubernetes.Interface, in string) (any, error) {
			o, err := c.AppsV1().StatefulSets(in).Get(ctx, "web", get)
			return o.Status.Conditions, err
		}, 2 * rejecting, places},
		{"DaemonSet", func(ctx context.Context, c kubernetes.Interface, in string) error {
			_, err := c.AppsV1().DaemonSets(in).Create(ctx, &appsv1.DaemonSet{ObjectMeta: meta, Spec: appsv1.DaemonSetSpec{
				Selector: selector, Template: template}}, create)
			return err
		}, func(ctx context.Context, c kubernetes.Interface, in string) (any, error) {
			o, err := c.AppsV1().DaemonSets(in).Get(ctx, "web", get)
			return o.Status.Conditions, err
		}, 2 * rejecting, places},
		{"Job", func(ctx context.Context, c kubernetes.Interface, in string) error {
			_, err := c.BatchV1().Jobs(in).Create(ctx, &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{
				Completions: ptr.To[int32](rejecting), Parallelism: ptr.To[int32](rejecting), CompletionMode: ptr.To(batchv1.IndexedCompletion),
				BackoffLimitPerIndex: ptr.To[int32](1000), Template: task}}, create)
			return err
		}, func(ctx context.Context, c kubernetes.Interface, in string) (any, error) {
			o, err := c.BatchV1().Jobs(in).Get(ctx, "web", get)
			return o.Status.Conditions, err
		}, rejecting, func(in time.Duration) int { return rejecting * (1 + steps(in)) }},
	}
}

// TestRejectedPodsAreFew has kubelets reject all pods of each kind of workload at
// once, for 20 s or for as long as KCM_REJECTIONS says, while the process is killed
// twice. Without the flag there would be thousands in five minutes.
func TestRejectedPodsAreFew(t *testing.T) {
	t.Parallel()
	lasts := 20 * time.Second
	if set := os.Getenv("KCM_REJECTIONS"); set != "" {
		var err error
		if lasts, err = time.ParseDuration(set); err != nil {
			t.Fatalf("KCM_REJECTIONS=%q: %v", set, err)
		}
	}
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	unlimited := rest.CopyConfig(cp.Admin)
	unlimited.QPS = -1
	client, err := kubernetes.NewForConfig(unlimited)
	if err != nil {
		t.Fatal(err)
	}
	kubelet := harness.StartKubelet(t, cp.Admin)
	for n := range rejecting {
		if err := kubelet.NodeReady(t.Context(), fmt.Sprintf("node-%d", n), ""); err != nil {
			t.Fatal(err)
		}
	}
	m := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{"--rejected-pod-backoff",
		"--controllers=replicaset-controller,statefulset-controller,daemonset-controller,job-controller,serviceaccount-controller"}})
	owners, counts := rejectedOwners(), map[string]*podCount{}
	for _, o := range owners {
		namespace := strings.ToLower(o.kind)
		counts[o.kind] = countPods(t, client, kubelet, namespace)
		if err := o.create(t.Context(), client, namespace); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	for _, part := range []float64{0.3, 0.7, 1} {
		pass(t, began, time.Duration(part*float64(lasts)))
		if part == 1 {
			break
		}
		m.Kill()
		if err := m.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range owners {
		harness.Eventually(t, patient, func(context.Context) error {
			if n := counts[o.kind].made(); n < o.least {
				return fmt.Errorf("%s: %d pods were made, wanted %d at least", o.kind, n, o.least)
			}
			return nil
		})
		n, took := counts[o.kind].made(), time.Since(began)
		t.Logf("%s of %d: %d pods in %s", o.kind, rejecting, n, took.Round(time.Second))
		if most := o.most(took); n > most {
			t.Errorf("%s: %d pods were made in %s, wanted %d at most", o.kind, n, took, most)
		}
		harness.Eventually(t, patient, func(ctx context.Context) error {
			conditions, err := o.status(ctx, client, strings.ToLower(o.kind))
			if err != nil {
				return err
			}
			if text, _ := json.Marshal(conditions); !strings.Contains(string(text), `"type":"ReplacementBackoff"`) || !strings.Contains(string(text), "with reason OutOfcpu") {
				return fmt.Errorf("%s has the conditions %s", o.kind, text)
			}
			return nil
		})
	}
}

// pass waits until so much time has passed.
func pass(t *testing.T, since time.Time, much time.Duration) {
	t.Helper()
	harness.Eventually(t, much+patient, func(context.Context) error {
		if left := much - time.Since(since); left > 0 {
			return fmt.Errorf("%s to go", left)
		}
		return nil
	})
}

// podCount is the pods that were seen in a namespace.
type podCount struct {
	mu   sync.Mutex
	seen map[types.UID]bool
}

func (c *podCount) made() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.seen)
}

// countPods makes a namespace whose pods are all rejected, and counts them.
func countPods(t *testing.T, client kubernetes.Interface, kubelet *harness.Kubelet, namespace string) *podCount {
	t.Helper()
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	kubelet.Reject(namespace, "OutOfcpu")
	kubelet.Serve(namespace, true)
	c := &podCount{seen: map[types.UID]bool{}}
	watchPods(t, client, namespace, func(_ context.Context, pod *corev1.Pod, _ bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.seen[pod.UID] = true
	})
	return c
}
