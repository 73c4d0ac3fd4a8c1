package clustertrustbundlepublisher

import (
	"errors"
	"testing"
	"time"

	certificatesv1alpha1 "k8s.io/api/certificates/v1alpha1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// start runs the controller on an API server that has an old bundle.
func start(t *testing.T, client *fake.Clientset, api func(informers.SharedInformerFactory) API) {
	t.Helper()
	own := Informers(client, 0)
	c, err := New(api(own), []byte(rootCA), fixture.Hand(client, nil))
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, client, c.Run, own)
}

func TestABundleComesBackInV1beta1(t *testing.T) {
	client := fake.NewClientset(bundle("kubernetes.io:kube-apiserver-serving:old", SignerName, "old"))
	start(t, client, Beta)
	bundles := client.CertificatesV1beta1().ClusterTrustBundles()
	only := func() bool {
		list, err := bundles.List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 1 && list.Items[0].Name == nameOf(rootCA) && list.Items[0].Spec.TrustBundle == rootCA
	}
	fixture.Eventually(t, "the bundle replaces the old one", only)
	if err := bundles.Delete(t.Context(), nameOf(rootCA), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the bundle is created again", only)
	if _, err := bundles.Update(t.Context(), bundle(nameOf(rootCA), SignerName, "forged"), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the bundle is put right", only)
}

func TestABundleIsPublishedInV1alpha1(t *testing.T) {
	old := &certificatesv1alpha1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: "kubernetes.io:kube-apiserver-serving:old"},
		Spec: certificatesv1alpha1.ClusterTrustBundleSpec{SignerName: SignerName}}
	client := fake.NewClientset(old)
	start(t, client, Alpha)
	bundles := client.CertificatesV1alpha1().ClusterTrustBundles()
	only := func() bool {
		list, err := bundles.List(t.Context(), metav1.ListOptions{})
		return err == nil && len(list.Items) == 1 && list.Items[0].Name == nameOf(rootCA) && list.Items[0].Spec.TrustBundle == rootCA
	}
	fixture.Eventually(t, "the bundle replaces the old one", only)
	if _, err := bundles.Update(t.Context(), alpha(bundle(nameOf(rootCA), SignerName, "forged")), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the bundle is put right", only)
}

func TestErrorsOfWrites(t *testing.T) {
	for name, tc := range map[string]struct {
		verb  string
		err   error
		fail  bool
		again time.Duration
		gone  bool
	}{
		"one that appeared meanwhile is looked at again":       {"create", apierrors.NewAlreadyExists(bundleResource, "x"), false, untilCached, false},
		"while publishing fails the old one stays":             {"create", apierrors.NewForbidden(bundleResource, "x", errors.New("policy")), true, 0, false},
		"an old one that has gone is no error":                 {"delete", apierrors.NewNotFound(bundleResource, "x"), false, 0, false},
		"an old one that a webhook keeps is tried again":       {"delete", apierrors.NewConflict(bundleResource, "x", errors.New("denied")), true, 0, false},
		"an old one that may not be deleted is tried again":    {"delete", apierrors.NewForbidden(bundleResource, "x", errors.New("policy")), true, 0, false},
		"with all permitted the old one goes after publishing": {"patch", nil, false, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			old := bundle("kubernetes.io:kube-apiserver-serving:old", SignerName, "old")
			client := fake.NewClientset(old)
			client.PrependReactor(tc.verb, "clustertrustbundles", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			api := Beta(Informers(client, 0))
			c, err := New(api, []byte(rootCA), fixture.Hand(client, nil))
			if err != nil {
				t.Fatal(err)
			}
			if err := api.informer.GetStore().Add(old); err != nil {
				t.Fatal(err)
			}
			got := c.Reconcile(t.Context(), SignerName)
			if (got.Err() != nil) != tc.fail || got.After() != tc.again {
				t.Errorf("got %v and %v, want an error: %v and %v", got.Err(), got.After(), tc.fail, tc.again)
			}
			_, err = client.CertificatesV1beta1().ClusterTrustBundles().Get(t.Context(), old.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) != tc.gone {
				t.Errorf("the old one: %v", err)
			}
		})
	}
}

func TestARefusedDeletionIsTriedAgain(t *testing.T) {
	old, kept := bundle("kubernetes.io:kube-apiserver-serving:old", SignerName, "old"), bundle(nameOf(rootCA), SignerName, rootCA)
	client := fake.NewClientset(old, kept)
	refuse := true
	client.PrependReactor("delete", "clustertrustbundles", func(clienttesting.Action) (bool, runtime.Object, error) {
		return refuse, nil, apierrors.NewConflict(bundleResource, "x", errors.New("denied by a webhook"))
	})
	api := Beta(Informers(client, 0))
	c, err := New(api, []byte(rootCA), fixture.Hand(client, nil))
	if err != nil {
		t.Fatal(err)
	}
	c.LookLive(fixture.Live(client))
	if err := errors.Join(api.informer.GetStore().Add(old), api.informer.GetStore().Add(kept)); err != nil {
		t.Fatal(err)
	}
	if err := c.Reconcile(t.Context(), SignerName).Err(); !apierrors.IsConflict(err) || len(c.Behind(SignerName)) > 0 {
		t.Errorf("got %v, and waits for %v", err, c.Behind(SignerName))
	}
	refuse = false
	if err := c.Reconcile(t.Context(), SignerName).Err(); err != nil {
		t.Error(err)
	}
	if _, err := client.CertificatesV1beta1().ClusterTrustBundles().Get(t.Context(), old.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the old one: %v", err)
	}
}
