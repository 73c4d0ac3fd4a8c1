package clusterroleaggregation

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func prepare(t *testing.T, roles ...*rbacv1.ClusterRole) (*Controller, *fake.Clientset, informers.SharedInformerFactory) {
	t.Helper()
	var objects []runtime.Object
	for _, r := range roles {
		objects = append(objects, r)
	}
	client := fake.NewClientset(objects...)
	shared := informers.NewSharedInformerFactory(client, 0)
	c, err := New(shared.Rbac().V1().ClusterRoles(), fixture.Hand(client, nil))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range roles {
		if err := c.roles.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	return c, client, shared
}

func TestRulesFollowThroughAChain(t *testing.T) {
	c, client, shared := prepare(t)
	fixture.Run(t, client, c.Run, shared)

	roles := client.RbacV1().ClusterRoles()
	for _, r := range []*rbacv1.ClusterRole{
		role("top", aggregates(to("top"))), role("middle", aggregates(to("middle")), labelled("to", "top")),
		role("leaf", labelled("to", "middle"), allows("pods")),
	} {
		if _, err := roles.Create(t.Context(), r, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	has := func(want ...string) {
		t.Helper()
		err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
			got, err := roles.Get(ctx, "top", metav1.GetOptions{})
			return err == nil && equality.Semantic.DeepEqual(got.Rules, rules(want...)), nil
		})
		if err != nil {
			t.Fatalf("waited in vain for the rules %v", want)
		}
	}
	has("pods")
	if _, err := roles.Create(t.Context(), role("more", labelled("to", "middle"), allows("nodes")), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	has("pods", "nodes")
	if err := roles.Delete(t.Context(), "leaf", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	has("nodes")
}

func TestErrorsOfApply(t *testing.T) {
	resource := rbacv1.Resource("clusterroles")
	for name, err := range map[string]error{
		"a refusal is retried":                            apierrors.NewForbidden(resource, "sum", errors.New("escalation")),
		"a role that was deleted or made anew is retried": apierrors.NewConflict(resource, "sum", errors.New("UID")),
		"a server that cannot be reached is retried":      errors.New("connection refused"),
	} {
		t.Run(name, func(t *testing.T) {
			c, client, _ := prepare(t, role("sum", aggregates(to("sum"))), role("a", labelled("to", "sum"), allows("pods")))
			var body string
			client.PrependReactor("patch", "clusterroles", func(action clienttesting.Action) (bool, runtime.Object, error) {
				body = string(action.(clienttesting.PatchAction).GetPatch())
				return true, nil, err
			})
			if got := c.Reconcile(t.Context(), "sum").Err(); !errors.Is(got, err) {
				t.Errorf("got %v", got)
			}
			if !strings.Contains(body, `"uid":"uid"`) {
				t.Errorf("nothing keeps a deleted role from being made again: %s", body)
			}
		})
	}
}

func TestAnInvalidSelectorIsNotRetried(t *testing.T) {
	c, client, _ := prepare(t, role("sum", aggregates(operator("Foo"))))
	got := c.Reconcile(t.Context(), "sum")
	if got.Err() == nil || got != runner.Terminal(got.Err()) || len(client.Actions()) > 0 {
		t.Errorf("got %+v, %v", got, client.Actions())
	}
}

type woken map[string]bool

func (w woken) Add(key string)                       { w[key] = true }
func (w woken) AddAfter(key string, _ time.Duration) { w[key] = true }

func TestWhoIsWoken(t *testing.T) {
	sum := role("sum", aggregates(to("sum")), labelled("to", "top"))
	c, _, _ := prepare(t, sum, role("top", aggregates(to("top"))), role("other", aggregates(to("other"))),
		role("round", aggregates(to("round")), labelled("to", "trip")), role("trip", aggregates(to("trip")), labelled("to", "round")))
	leaf := role("a", labelled("to", "sum"))
	for name, tc := range map[string]struct {
		before, after *rbacv1.ClusterRole
		want          []string
	}{
		"a new role wakes those that select it, up to the top": {nil, leaf, []string{"sum", "top"}},
		"one that went does too":                               {leaf, nil, []string{"sum", "top"}},
		"a label that moved wakes both":                        {leaf, role("a", labelled("to", "other")), []string{"sum", "top", "other"}},
		"a role of a cycle wakes all of it":                    {nil, role("b", labelled("to", "trip")), []string{"round", "trip"}},
		"an annotation wakes nobody":                           {leaf, role("a", labelled("to", "sum"), func(r *rbacv1.ClusterRole) { r.Annotations = map[string]string{"x": "y"} }), nil},
		"an aggregated role wakes itself and who selects it":   {nil, sum, []string{"sum", "top"}},
		"rules that somebody wrote wake the role itself":       {sum, role("sum", aggregates(to("sum")), labelled("to", "top"), allows("pods")), []string{"sum", "top"}},
	} {
		got, want := woken{}, woken{}
		c.wake(runner.Change[rbacv1.ClusterRole]{Old: tc.before, New: tc.after}, got)
		for _, key := range tc.want {
			want[key] = true
		}
		if len(got) != len(want) {
			t.Errorf("%s: got %v", name, got)
		}
		for key := range want {
			if !got[key] {
				t.Errorf("%s: got %v", name, got)
			}
		}
	}
}

func TestARoleThatIsGoneNeedsNothing(t *testing.T) {
	c, client, _ := prepare(t)
	if err := c.Reconcile(t.Context(), "sum").Err(); err != nil || len(client.Actions()) > 0 {
		t.Errorf("got %v and sent %v", err, client.Actions())
	}
}
