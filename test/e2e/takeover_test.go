package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// quiet is how long a cluster must see no write to count as settled, and how
// long a new binary is watched. The slowest period of a controller that writes
// by itself is the node monitor's 5 s, the autoscalers' 15 s, the pod collector's 20 s.
const quiet = 25 * time.Second

// TestChangeOfBinaryWritesNothing settles a cluster under the original, and
// changes the binary there and back. No controller may write to a workload
// object, a budget, an autoscaler, a slice, a node, a claim, a volume, an
// attachment, a service account or a secret.
func TestChangeOfBinaryWritesNothing(t *testing.T) {
	t.Parallel()
	c := newClusterWith(t, jobStages(t))
	reference := tools(t).ReferenceManager
	original := c.manager(t, reference, ranges...)
	c.nodes(t, 4)
	start := c.Audit.Mark()
	c.furnish(t)
	if len(c.writes(start)) == 0 {
		t.Fatal("no write of the original is seen: the filter of the audit log is wrong")
	}
	c.settle(t)
	before, budgets, stored := c.pods(t), c.budgets(t), c.stored(t)

	for _, change := range []struct{ name, path string }{
		{"to ours", harness.BuiltBinary(t)}, {"back to the original", reference}, {"to ours again", harness.BuiltBinary(t)},
	} {
		if err := original.Terminate(time.Minute); err != nil {
			t.Fatal(err)
		}
		mark := c.Audit.Mark()
		original = c.manager(t, change.path, ranges...)
		harness.Eventually(t, 2*time.Minute, func(context.Context) error { return c.ledSince(mark) })
		watched := time.NewTimer(quiet)
		<-watched.C
		harness.Eventually(t, 2*time.Minute, func(context.Context) error { return c.autoscaledSince(mark) })
		for _, write := range c.writes(mark) {
			if change.path == reference && repeats(write) {
				continue
			}
			t.Errorf("the change %s wrote: %s", change.name, write)
		}
		if after := c.pods(t); after != before {
			t.Errorf("the change %s changed the pods:\n%s\nbefore:\n%s", change.name, after, before)
		}
		if after := c.budgets(t); after != budgets {
			t.Errorf("the change %s changed the budgets:\n%s\nbefore:\n%s", change.name, after, budgets)
		}
		if after := c.stored(t); after != stored {
			t.Errorf("the change %s changed claims and volumes:\n%s\nbefore:\n%s", change.name, after, stored)
		}
	}
	last := c.Audit.Mark()
	harness.CreateDeployment(t, c.client, "proof", 1)
	harness.RolledOut(t, c.client, "proof", 1, 2*time.Minute)
	if len(c.writes(last)) == 0 {
		t.Error("no write of ours is seen: the filter of the audit log is wrong")
	}
}

// furnish makes what a cluster of some years has: Deployments with history, in
// all states, their Services, namespaces, a tainted node, a token secret.
func (c *cluster) furnish(t *testing.T) {
	ctx := t.Context()
	for i, name := range []string{"plain", "rolled", "paused", "bare", "recreate"} {
		d := harness.Deployment(name, int32(i+1))
		if name == "recreate" {
			d.Spec.Strategy.Type = "Recreate"
		}
		must(t)(c.client.AppsV1().Deployments("default").Create(ctx, d, metav1.CreateOptions{}))
		if name != "bare" {
			must(t)(c.client.CoreV1().Services("default").Create(ctx, harness.Service(name), metav1.CreateOptions{}))
		}
		harness.RolledOut(t, c.client, name, int32(i+1), 2*time.Minute)
	}
	for revision := range 3 {
		harness.SetImage(t, c.client, "rolled", fmt.Sprintf("web:r%d", revision))
		harness.RolledOut(t, c.client, "rolled", 2, 2*time.Minute)
	}
	must(t)(c.client.AppsV1().Deployments("default").Patch(ctx, "paused", types.MergePatchType, []byte(`{"spec":{"paused":true}}`), metav1.PatchOptions{}))
	harness.SetImage(t, c.client, "paused", "web:held")
	c.furnishDaemons(t, 4)
	headless := harness.Service("headless")
	headless.Spec.ClusterIP, headless.Spec.Selector = "None", map[string]string{"app": "rolled"}
	must(t)(c.client.CoreV1().Services("default").Create(ctx, headless, metav1.CreateOptions{}))
	must(t)(c.client.CoreV1().ReplicationControllers("default").Create(ctx, &corev1.ReplicationController{
		ObjectMeta: metav1.ObjectMeta{Name: "rc"},
		Spec: corev1.ReplicationControllerSpec{Replicas: new(int32(2)), Selector: map[string]string{"app": "rc"}, Template: &corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "rc"}}, Spec: harness.Deployment("rc", 1).Spec.Template.Spec}},
	}, metav1.CreateOptions{}))
	c.furnishSets(t)
	c.furnishBatch(t)
	c.furnishBudgets(t)
	c.furnishAutoscalers(t)
	c.furnishVolumes(t)
	c.furnishDevices(t)
	c.furnishNetwork(t)
	for i := range 3 {
		must(t)(c.client.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("team-%d", i)}}, metav1.CreateOptions{}))
	}
	must(t)(c.client.CoreV1().Secrets("default").Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "token", Annotations: map[string]string{corev1.ServiceAccountNameKey: "default"}}, Type: corev1.SecretTypeServiceAccountToken,
	}, metav1.CreateOptions{}))
	must(t)(c.client.CoreV1().Nodes().Patch(ctx, "node-3", types.MergePatchType, []byte(`{"spec":{"unschedulable":true}}`), metav1.PatchOptions{}))
}

func must(t testing.TB) func(object any, err error) {
	return func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// settle waits until no controller has written for the quiet time.
func (c *cluster) settle(t *testing.T) {
	mark, since := c.Audit.Mark(), time.Now()
	harness.Eventually(t, 3*time.Minute, func(context.Context) error {
		if writes := c.writes(mark); len(writes) > 0 {
			mark, since = c.Audit.Mark(), time.Now()
			return fmt.Errorf("last write: %s", writes[len(writes)-1])
		}
		if left := quiet - time.Since(since); left > 0 {
			return fmt.Errorf("%s of the quiet time left", left)
		}
		return nil
	})
}

// eventsSince are the requests of controller managers after a mark of the audit log.
func (c *cluster) eventsSince(mark int64) []harness.AuditEvent {
	var events []harness.AuditEvent
	for _, event := range c.Audit.Since(mark) {
		if strings.HasPrefix(event.UserAgent, "kube-controller-manager") {
			events = append(events, event)
		}
	}
	return events
}

// ledSince fails until a controller manager has taken the lease.
func (c *cluster) ledSince(mark int64) error {
	for _, event := range c.eventsSince(mark) {
		if event.ObjectRef != nil && event.ObjectRef.Resource == "events" && event.ObjectRef.Namespace == "kube-system" {
			return nil // the LeaderElection event
		}
	}
	return errors.New("no leader yet")
}

// writes are those of controllers to anything but leases, events and reviews.
func (c *cluster) writes(mark int64) []harness.AuditEvent {
	var writes []harness.AuditEvent
	for _, event := range c.eventsSince(mark) {
		if event.Write() && event.ObjectRef != nil && event.ObjectRef.Resource != "leases" && event.ObjectRef.Resource != "events" {
			writes = append(writes, event)
		}
	}
	return writes
}

func (c *cluster) pods(t testing.TB) string {
	t.Helper()
	pods, err := c.client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, p := range pods.Items {
		lines = append(lines, fmt.Sprintf("%s/%s %s %s", p.Namespace, p.Name, p.UID, p.Status.Phase))
	}
	return strings.Join(lines, "\n")
}
