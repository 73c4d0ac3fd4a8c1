package ttl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var (
	_ runner.Loop = (*Controller)(nil)

	nodeResource = corev1.Resource("nodes")
)

// running starts the controller on a fake server with these nodes.
func running(t *testing.T, nodes ...runtime.Object) (*Controller, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset(nodes...)
	shared := informers.NewSharedInformerFactory(client, 0)
	c, err := New(shared.Core().V1().Nodes(), fixture.Hand(client, nil))
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, client, c.Run, shared)
	return c, client
}

// until waits for all nodes to say what is wanted.
func until(t *testing.T, client *fake.Clientset, want string) {
	t.Helper()
	var odd []string
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 30*time.Second, true, func(ctx context.Context) (bool, error) {
		list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		odd = nil
		for _, n := range list.Items {
			if has := n.Annotations[corev1.ObjectTTLAnnotationKey]; has != want {
				odd = append(odd, n.Name+": "+has)
			}
		}
		return len(odd) == 0, nil
	})
	if err != nil {
		t.Fatalf("want %q everywhere, but %v", want, odd)
	}
}

func named(i int) string { return fmt.Sprintf("node-%05d", i) }

func crowd(n int, annotations map[string]string) []runtime.Object {
	all := make([]runtime.Object, 0, n)
	for i := range n {
		all = append(all, node(named(i), annotations))
	}
	return all
}

func patches(client *fake.Clientset) (n int) {
	for _, action := range client.Actions() {
		if action.GetVerb() == "patch" {
			n++
		}
	}
	return n
}

func TestNodesFollowTheSizeOfTheCluster(t *testing.T) {
	_, client := running(t, crowd(100, nil)...)
	until(t, client, "0")
	nodes := client.CoreV1().Nodes()
	if _, err := nodes.Create(t.Context(), node(named(100), nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, client, "15")
	if got := patches(client); got < 201 || got > 202 {
		t.Errorf("%d patches; a node that is there is patched once, the new one twice at most", got)
	}
	for i := 90; i < 101; i++ {
		if err := nodes.Delete(t.Context(), named(i), metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := nodes.Patch(t.Context(), named(0), "application/merge-patch+json", []byte(`{"metadata":{"annotations":{"node.alpha.kubernetes.io/ttl":"7"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, client, "15")
	if err := nodes.Delete(t.Context(), named(0), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, client, "0")
}

func TestAHeartbeatWakesNobody(t *testing.T) {
	c, client := running(t, crowd(3, annotated("0"))...)
	changed := node(named(1), annotated("0"))
	changed.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	if _, err := client.CoreV1().Nodes().UpdateStatus(t.Context(), changed, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	// What is asked for afterwards is done, so the heartbeat has been seen.
	if _, err := client.CoreV1().Nodes().Create(t.Context(), node("last", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, client, "0")
	if patches(client) != 1 || c.Snapshot().Counts.Syncs > 2 {
		t.Errorf("%d patches, %d syncs", patches(client), c.Snapshot().Counts.Syncs)
	}
}

func TestErrorsOfPatches(t *testing.T) {
	broken := errors.New("connection refused")
	for name, tc := range map[string]struct {
		live *corev1.Node
		err  error
		fail bool
	}{
		"a node that is gone is gone":             {nil, apierrors.NewNotFound(nodeResource, "a"), false},
		"another of its name has its own turn":    {&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "b"}}, apierrors.NewConflict(nodeResource, "a", broken), false},
		"a refusal is retried":                    {node("a", nil), apierrors.NewForbidden(nodeResource, "a", broken), true},
		"also one that looks like a replaced one": {node("a", nil), apierrors.NewConflict(nodeResource, "a", broken), true},
		"also one that looks like a node gone":    {node("a", nil), apierrors.NewNotFound(nodeResource, "a"), true},
		"so is a server that does not answer":     {node("a", nil), broken, true},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			var sent string
			client.PrependReactor("patch", "nodes", func(action clienttesting.Action) (bool, runtime.Object, error) {
				sent = string(action.(clienttesting.PatchAction).GetPatch())
				return true, nil, tc.err
			})
			informer := informers.NewSharedInformerFactory(client, 0).Core().V1().Nodes()
			c, err := New(informer, fixture.Hand(client, nil))
			if err != nil {
				t.Fatal(err)
			}
			if err := informer.Informer().GetStore().Add(node("a", nil)); err != nil {
				t.Fatal(err)
			}
			c.LookLive(fixture.LiveOf(func(schema.GroupResource, string) ([]metav1.Object, error) {
				if tc.live == nil {
					return nil, nil
				}
				return []metav1.Object{tc.live}, nil
			}))
			if got := c.Reconcile(t.Context(), "a").Err(); (got != nil) != tc.fail || tc.fail && !errors.Is(got, tc.err) {
				t.Errorf("got %v", got)
			}
			if !strings.Contains(sent, `"uid":"uid"`) || !strings.Contains(sent, `"node.alpha.kubernetes.io/ttl":"0"`) {
				t.Errorf("sent %s", sent)
			}
			if got := c.Reconcile(t.Context(), "other").Err(); got != nil {
				t.Errorf("a node that is gone: %v", got)
			}
		})
	}
}

// woken counts what a watch rule wakes.
type woken int

func (w *woken) Add(string)                     { *w++ }
func (w *woken) AddAfter(string, time.Duration) { *w++ }

// BenchmarkNodeChange shows that a node's change costs the same in a cluster of any size.
func BenchmarkNodeChange(b *testing.B) {
	for _, n := range []int{1_000, 10_000} {
		b.Run(fmt.Sprintf("nodes=%d", n), func(b *testing.B) {
			client := fake.NewClientset()
			informer := informers.NewSharedInformerFactory(client, 0).Core().V1().Nodes()
			c, err := New(informer, fixture.Hand(client, nil))
			if err != nil {
				b.Fatal(err)
			}
			var wakes woken
			for _, object := range crowd(n, annotated(fmt.Sprint(stages[follow(0, n)].seconds))) {
				if err := informer.Informer().GetStore().Add(object); err != nil {
					b.Fatal(err)
				}
				c.nodeChanged(runner.Change[corev1.Node]{New: object.(*corev1.Node)}, &wakes)
			}
			wakes = 0
			beat := node(named(1), annotated(fmt.Sprint(stages[follow(0, n)].seconds)))
			for b.Loop() {
				c.nodeChanged(runner.Change[corev1.Node]{Old: beat, New: beat}, &wakes)
				if err := c.Reconcile(b.Context(), beat.Name).Err(); err != nil {
					b.Fatal(err)
				}
			}
			if wakes != 0 || len(client.Actions()) != 0 {
				b.Fatalf("%d wakes, %d requests", wakes, len(client.Actions()))
			}
		})
	}
}
