package rootcapublisher

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func TestTheConfigMapComesBackAfterDeletionAndAfterChange(t *testing.T) {
	client := fake.NewClientset(namespace(corev1.NamespaceActive))
	shared, own := informers.NewSharedInformerFactory(client, 0), Informers(client, 0)
	c, err := New(shared.Core().V1().Namespaces(), own.Core().V1().ConfigMaps(), []byte(rootCA), fixture.Hand(client, nil))
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, client, c.Run, shared, own)

	maps := client.CoreV1().ConfigMaps("team")
	published := func(what string) *corev1.ConfigMap {
		t.Helper()
		var found *corev1.ConfigMap
		err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 20*time.Second, true, func(ctx context.Context) (bool, error) {
			var err error
			found, err = maps.Get(ctx, ConfigMapName, metav1.GetOptions{})
			return err == nil && found.Data[certificateKey] == rootCA && found.Annotations[descriptionAnnotation] == description, nil
		})
		if err != nil {
			t.Fatalf("waited in vain: %s", what)
		}
		return found
	}
	published("the config map is created")
	if err := maps.Delete(t.Context(), ConfigMapName, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	cm := published("the config map is created again").DeepCopy()
	cm.Data[certificateKey] = "forged"
	if _, err := maps.Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	published("the config map is put right")
}

func TestTheInformerAsksForOneNameOnly(t *testing.T) {
	client := fake.NewClientset()
	asked := make(chan string, 2)
	client.PrependReactor("list", "configmaps", func(action clienttesting.Action) (bool, runtime.Object, error) {
		asked <- action.(clienttesting.ListAction).GetListRestrictions().Fields.String()
		return false, nil, nil
	})
	own := Informers(client, 0)
	own.Core().V1().ConfigMaps().Informer()
	own.Start(t.Context().Done())
	if got := <-asked; got != "metadata.name=kube-root-ca.crt" {
		t.Errorf("listed with fields %q", got)
	}
}

func TestErrorsOfWrites(t *testing.T) {
	resource := corev1.Resource("configmaps")
	terminating := apierrors.NewForbidden(resource, ConfigMapName, errors.New("ends"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	wrong := configMap(func(cm *corev1.ConfigMap) { cm.Data = nil })
	for name, tc := range map[string]struct {
		published *corev1.ConfigMap
		err       error
		fail      bool
		again     time.Duration
	}{
		"one that appeared meanwhile is looked at again":     {nil, apierrors.NewAlreadyExists(resource, ConfigMapName), false, untilCached},
		"a namespace that began to terminate is no error":    {nil, terminating, false, 0},
		"a refused creation is retried":                      {nil, apierrors.NewForbidden(resource, ConfigMapName, errors.New("policy")), true, 0},
		"a conflict is retried from the newer state":         {wrong, apierrors.NewConflict(resource, ConfigMapName, errors.New("changed")), true, 0},
		"one that vanished before the update is retried too": {wrong, apierrors.NewNotFound(resource, ConfigMapName), true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset()
			client.PrependReactor("*", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			shared := informers.NewSharedInformerFactory(client, 0)
			c, err := New(shared.Core().V1().Namespaces(), shared.Core().V1().ConfigMaps(), []byte(rootCA), fixture.Hand(client, nil))
			if err != nil {
				t.Fatal(err)
			}
			_ = shared.Core().V1().Namespaces().Informer().GetStore().Add(namespace(corev1.NamespaceActive))
			if tc.published != nil {
				_ = shared.Core().V1().ConfigMaps().Informer().GetStore().Add(tc.published)
			}
			got := c.Reconcile(t.Context(), "team")
			if (got.Err() != nil) != tc.fail || got.After() != tc.again {
				t.Errorf("got error %v and %v, want an error: %v and %v", got.Err(), got.After(), tc.fail, tc.again)
			}
		})
	}
}

func TestANamespaceThatIsGoneGetsNothing(t *testing.T) {
	client := fake.NewClientset()
	shared := informers.NewSharedInformerFactory(client, 0)
	c, err := New(shared.Core().V1().Namespaces(), shared.Core().V1().ConfigMaps(), []byte(rootCA), fixture.Hand(client, nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Reconcile(t.Context(), "team").Err(); err != nil || len(client.Actions()) > 0 {
		t.Errorf("got %v and sent %v", err, client.Actions())
	}
}
