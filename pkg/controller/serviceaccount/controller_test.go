package serviceaccount

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func start(t *testing.T, client *fake.Clientset) *Controller {
	t.Helper()
	shared := informers.NewSharedInformerFactory(client, 0)
	c, err := New(shared.Core().V1().Namespaces(), shared.Core().V1().ServiceAccounts(), fixture.Hand(client, nil))
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, client, c.Run, shared)
	return c
}

func TestADeletedDefaultAccountComesBack(t *testing.T) {
	client := fake.NewClientset(namespace(corev1.NamespaceActive))
	start(t, client)
	accounts := client.CoreV1().ServiceAccounts("team")
	there := func() bool {
		_, err := accounts.Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	}
	fixture.Eventually(t, "the account is created", there)
	if err := accounts.Delete(t.Context(), "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the account is created again", there)
}

func TestErrorsOfCreate(t *testing.T) {
	resource := corev1.Resource("serviceaccounts")
	terminating := apierrors.NewForbidden(resource, "default", errors.New("ends"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, tc := range map[string]struct {
		err  error
		fail bool
	}{
		"an account that somebody else created is fine":             {apierrors.NewAlreadyExists(resource, "default"), false},
		"a namespace that began to terminate is no error":           {terminating, false},
		"a refusal for any other reason is retried":                 {apierrors.NewForbidden(resource, "default", errors.New("quota")), true},
		"a server that cannot be reached is retried":                {errors.New("connection refused"), true},
		"a namespace that was deleted in between is an error first": {apierrors.NewNotFound(corev1.Resource("namespaces"), "team"), true},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("create", "serviceaccounts", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, tc.err
			})
			shared := informers.NewSharedInformerFactory(client, 0)
			c, err := New(shared.Core().V1().Namespaces(), shared.Core().V1().ServiceAccounts(), fixture.Hand(client, nil))
			if err != nil {
				t.Fatal(err)
			}
			if err := shared.Core().V1().Namespaces().Informer().GetStore().Add(namespace(corev1.NamespaceActive)); err != nil {
				t.Fatal(err)
			}
			got := c.Reconcile(t.Context(), "team").Err()
			if (got != nil) != tc.fail {
				t.Errorf("got error %v, want one: %v", got, tc.fail)
			}
			if tc.fail && !errors.Is(got, tc.err) {
				t.Errorf("error %v does not wrap %v", got, tc.err)
			}
		})
	}
}

func TestANamespaceThatIsGoneGetsNothing(t *testing.T) {
	client := fake.NewClientset()
	shared := informers.NewSharedInformerFactory(client, 0)
	c, err := New(shared.Core().V1().Namespaces(), shared.Core().V1().ServiceAccounts(), fixture.Hand(client, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Reconcile(t.Context(), "team").Err(); err != nil || len(client.Actions()) > 0 {
		t.Errorf("got %v and sent %v", err, client.Actions())
	}
}
