package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// TestADrainWaitsForTheBudget evicts two of four pods while no other can come in
// their place: the second has to wait until there is room again.
func TestADrainWaitsForTheBudget(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.manager(t, harness.BuiltBinary(t), "--leader-elect=false")
	c.nodes(t, 3)
	harness.CreateDeployment(t, c.client, "web", 4)
	harness.RolledOut(t, c.client, "web", 4, 2*time.Minute)
	share := intstr.FromString("75%")
	must(t)(c.client.PolicyV1().PodDisruptionBudgets("default").Create(t.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &share, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}},
	}, metav1.CreateOptions{}))
	c.budget(t, 1, 4)

	c.cordon(t, true)
	pods := c.podsOf(t, "web")
	if err := c.evict(t.Context(), pods[0].Name); err != nil {
		t.Fatal(err)
	}
	c.budget(t, 0, 3)
	err := c.evict(t.Context(), pods[1].Name)
	if !apierrors.IsTooManyRequests(err) || !strings.Contains(err.Error(), "disruption budget") {
		t.Fatalf("the second eviction was answered with: %v", err)
	}

	c.cordon(t, false)
	harness.Eventually(t, 2*time.Minute, func(ctx context.Context) error { return c.evict(ctx, pods[1].Name) })
	harness.RolledOut(t, c.client, "web", 4, 2*time.Minute)
	c.budget(t, 1, 4)
	for _, p := range c.podsOf(t, "web") {
		if p.UID == pods[0].UID || p.UID == pods[1].UID {
			t.Errorf("pod %s was evicted and is there", p.Name)
		}
	}
}

// budget waits until the budget web lets so many pods go, of so many healthy ones.
func (c *cluster) budget(t *testing.T, allowed, healthy int32) {
	t.Helper()
	harness.Eventually(t, 2*time.Minute, func(ctx context.Context) error {
		b, err := c.client.PolicyV1().PodDisruptionBudgets("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := b.Status; s.DisruptionsAllowed != allowed || s.CurrentHealthy != healthy || s.ExpectedPods != 4 || s.DesiredHealthy != 3 {
			return fmt.Errorf("status %+v, wanted %d allowed and %d healthy", s, allowed, healthy)
		}
		return nil
	})
}

func (c *cluster) evict(ctx context.Context, pod string) error {
	return c.client.PolicyV1().Evictions("default").Evict(ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: pod}})
}

// cordon closes or opens all nodes for new pods.
func (c *cluster) cordon(t *testing.T, closed bool) {
	t.Helper()
	nodes, err := c.client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	patch := fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, closed)
	for _, node := range nodes.Items {
		must(t)(c.client.CoreV1().Nodes().Patch(t.Context(), node.Name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}))
	}
}

// podsOf lists the pods with the label app=name that are not on their way out.
func (c *cluster) podsOf(t *testing.T, name string) []corev1.Pod {
	t.Helper()
	list, err := c.client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
	if err != nil {
		t.Fatal(err)
	}
	var pods []corev1.Pod
	for _, p := range list.Items {
		if p.DeletionTimestamp == nil {
			pods = append(pods, p)
		}
	}
	return pods
}

// TestRejectedPodsAreReplacedEverMoreRarely gives ten pods to a node that rejects
// whatever it gets, until there have been four rounds of replacements, and then
// takes them. The manager is killed in between. The pods that there are then are
// as many as the rounds make: 10, 10 at once, 5 after 10 s, 3 after 20 s.
func TestRejectedPodsAreReplacedEverMoreRarely(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	args := []string{"--leader-elect=false", "--controllers=deployment-controller,replicaset-controller,serviceaccount-controller", "--rejected-pod-backoff"}
	m := c.manager(t, harness.BuiltBinary(t), args...)
	d := harness.Deployment("web", 10)
	d.Spec.Template.Spec.NodeName = "nobody"
	must(t)(c.client.AppsV1().Deployments("default").Create(t.Context(), d, metav1.CreateOptions{}))

	began, killed := time.Now(), false
	harness.Eventually(t, 3*time.Minute, func(ctx context.Context) error {
		c.answer(t, `{"status":{"phase":"Failed","reason":"OutOfcpu","message":"Pod was rejected: Node didn't have enough resource: cpu"}}`)
		n := len(c.podsOf(t, "web"))
		if n >= 20 && !killed {
			killed = true
			m.Kill()
			c.manager(t, harness.BuiltBinary(t), args...)
		}
		if n < 28 {
			return fmt.Errorf("%d pods", n)
		}
		return nil
	})
	if took := time.Since(began); took < 25*time.Second {
		t.Errorf("28 pods were made within %s", took)
	}
	harness.Eventually(t, time.Minute, func(ctx context.Context) error {
		c.answer(t, `{"status":{"phase":"Failed","reason":"OutOfcpu","message":"Pod was rejected: Node didn't have enough resource: cpu"}}`)
		return c.heldBack(ctx, "in a row, the last with reason OutOfcpu); the next pod is created at ")
	})
	if n := len(c.podsOf(t, "web")); n > 34 {
		t.Errorf("%d pods were made", n)
	}
	harness.Eventually(t, 3*time.Minute, func(ctx context.Context) error {
		c.answer(t, fmt.Sprintf(`{"status":{"phase":"Running","conditions":[{"type":"Ready","status":"True"}],"containerStatuses":[{"name":"web","image":"web:1","imageID":"","ready":true,"restartCount":0,"state":{"running":{"startedAt":%q}}}]}}`,
			time.Now().UTC().Format(time.RFC3339)))
		d, err := c.client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if d.Status.AvailableReplicas != 10 {
			return fmt.Errorf("%d available", d.Status.AvailableReplicas)
		}
		return c.heldBack(ctx, "")
	})
}

// answer is what the node says of every pod that waits for it.
func (c *cluster) answer(t *testing.T, status string) {
	t.Helper()
	for _, p := range c.podsOf(t, "web") {
		if p.Status.Phase == corev1.PodPending {
			must(t)(c.client.CoreV1().Pods("default").Patch(t.Context(), p.Name, types.StrategicMergePatchType, []byte(status), metav1.PatchOptions{}, "status"))
		}
	}
}

// heldBack reports whether the ReplicaSet's condition has these words; without
// words, whether it is gone.
func (c *cluster) heldBack(ctx context.Context, words string) error {
	sets, err := c.client.AppsV1().ReplicaSets("default").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, rs := range sets.Items {
		for _, condition := range rs.Status.Conditions {
			if condition.Type != "ReplacementBackoff" {
				continue
			}
			if words != "" && strings.Contains(condition.Message, words) {
				return nil
			}
			return fmt.Errorf("the condition says %q", condition.Message)
		}
	}
	if words != "" {
		return fmt.Errorf("there is no condition")
	}
	return nil
}
