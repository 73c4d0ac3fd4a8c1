package tokencleaner

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var key = types.NamespacedName{Namespace: "kube-system", Name: "bootstrap-token-abcdef"}

func TestATokenGoesAtItsTime(t *testing.T) {
	elsewhere, opaque := token("2001-01-01T00:00:00Z"), token("2001-01-01T00:00:00Z")
	elsewhere.Namespace, opaque.Type, opaque.Name = "default", corev1.SecretTypeOpaque, "opaque"
	client := fake.NewClientset(token("2026-06-01T12:00:05Z"), elsewhere, opaque)
	rig := fixture.New(client, noon)
	c, err := New(rig.In.Core().V1().Secrets(), rig.Hand())
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, client, c.Run, rig.In)

	deleted := func() (names []string) {
		for _, action := range client.Actions() {
			if d, ok := action.(clienttesting.DeleteAction); ok {
				names = append(names, d.GetNamespace()+"/"+d.GetName())
			}
		}
		return names
	}
	fixture.Eventually(t, "the token was judged", func() bool { _, known := c.Key(key.String()); return known && c.Len() == 0 })
	rig.Clock.Step(4 * time.Second)
	if got := deleted(); got != nil {
		t.Fatalf("deleted %v too early", got)
	}
	fixture.Eventually(t, "the token is deleted", func() bool { rig.Clock.Step(time.Second); return len(deleted()) > 0 })
	if got := deleted(); len(got) != 1 || got[0] != "kube-system/bootstrap-token-abcdef" {
		t.Errorf("deleted %v", got)
	}
}

func TestErrorsOfDeletion(t *testing.T) {
	resource := corev1.Resource("secrets")
	for name, tc := range map[string]struct {
		refusal error
		fail    bool
	}{
		"a token that was changed since is judged again": {apierrors.NewConflict(resource, key.Name, errors.New("changed")), true},
		"a token that is gone is fine":                   {apierrors.NewNotFound(resource, key.Name), false},
		"a refusal is retried":                           {apierrors.NewForbidden(resource, key.Name, errors.New("policy")), true},
	} {
		t.Run(name, func(t *testing.T) {
			c, client := judging(t, token("soon"))
			client.PrependReactor("delete", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.refusal })
			if got := c.Reconcile(t.Context(), key).Err(); (got != nil) != tc.fail {
				t.Errorf("got %v", got)
			}
		})
	}
}

// judging returns a controller whose cache holds the secret.
func judging(t *testing.T, secret *corev1.Secret) (*Controller, *fake.Clientset) {
	t.Helper()
	client := fake.NewClientset(secret)
	rig := fixture.New(client, noon)
	c, err := New(rig.In.Core().V1().Secrets(), rig.Hand())
	if err != nil {
		t.Fatal(err)
	}
	rig.Cache(t, secret)
	return c, client
}

func TestATokenIsDeletedAsItWasJudged(t *testing.T) {
	c, client := judging(t, token("soon"))
	if err := c.Reconcile(t.Context(), key).Err(); err != nil {
		t.Fatal(err)
	}
	deletion, ok := client.Actions()[0].(clienttesting.DeleteActionImpl)
	if !ok || deletion.DeleteOptions.Preconditions == nil {
		t.Fatalf("sent %v", client.Actions())
	}
	if p := deletion.DeleteOptions.Preconditions; *p.UID != "u-1" || *p.ResourceVersion != "5" {
		t.Errorf("deleted with preconditions %v", p)
	}
}

func TestATokenThatIsGoneIsNothingToDo(t *testing.T) {
	c, client := judging(t, token("soon"))
	if err := c.Reconcile(t.Context(), types.NamespacedName{Namespace: "kube-system", Name: "other"}).Err(); err != nil || len(client.Actions()) > 0 {
		t.Errorf("got %v and sent %v", err, client.Actions())
	}
}

func TestARefusedDeletionIsTriedAgain(t *testing.T) {
	for name, refusal := range map[string]error{
		"as a webhook may refuse it": apierrors.NewConflict(corev1.Resource("secrets"), key.Name, errors.New("denied")),
		"as an odd answer":           apierrors.NewNotFound(corev1.Resource("secrets"), key.Name),
		"as by a webhook that fails": apierrors.NewInternalError(errors.New("failed calling webhook")),
	} {
		t.Run(name, func(t *testing.T) {
			c, client := judging(t, token("soon"))
			c.LookLive(fixture.Live(client))
			refuse := true
			client.PrependReactor("delete", "secrets", func(clienttesting.Action) (bool, runtime.Object, error) { return refuse, nil, refusal })
			if err := c.Reconcile(t.Context(), key).Err(); !errors.Is(err, refusal) || len(c.Behind(key)) > 0 {
				t.Errorf("got %v, and waits for %v", err, c.Behind(key))
			}
			refuse = false
			if err := c.Reconcile(t.Context(), key).Err(); err != nil {
				t.Error(err)
			}
			if _, err := client.CoreV1().Secrets(key.Namespace).Get(t.Context(), key.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the token: %v", err)
			}
		})
	}
}
