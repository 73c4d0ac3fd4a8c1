package clustertrustbundlepublisher

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

const (
	rootCA = "-----BEGIN CERTIFICATE-----"
)

func bundle(name, signer, content string) *certificatesv1beta1.ClusterTrustBundle {
	b := &certificatesv1beta1.ClusterTrustBundle{}
	b.Name, b.Spec.SignerName, b.Spec.TrustBundle = name, signer, content
	return b
}

func TestPlan(t *testing.T) {
	name := nameOf(rootCA)
	good := bundle(name, SignerName, rootCA)
	old, older := bundle("kubernetes.io:kube-apiserver-serving:b", SignerName, "x"), bundle("kubernetes.io:kube-apiserver-serving:a", SignerName, "y")
	leaving := old.DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	changed := bundle(name, SignerName, "forged")
	changed.Annotations = map[string]string{"note": "kept"}
	repaired := changed.DeepCopy()
	repaired.Spec.TrustBundle = rootCA
	create, update := "create ClusterTrustBundle "+name, "update ClusterTrustBundle "+name
	remove := func(b *certificatesv1beta1.ClusterTrustBundle) string { return "delete ClusterTrustBundle " + b.Name }
	const only = "it is complete: the bundle is published, and it is the only one"
	type bundles = []*certificatesv1beta1.ClusterTrustBundle
	for test, tc := range map[string]struct {
		bundles bundles
		rootCA  string
		// publish and remove are what is done first, and what when that has succeeded.
		publish, remove string
		written         *certificatesv1beta1.ClusterTrustBundle
		why, then       string
	}{
		"a missing bundle is created":               {nil, rootCA, create, "", good, "the bundle is missing", only},
		"a good one is left alone":                  {bundles{good}, rootCA, "", "", nil, only, ""},
		"a changed one is put right, the rest kept": {bundles{changed}, rootCA, update, "", repaired, "the bundle was changed", only},
		"others of the signer are deleted, in order of their names": {bundles{old, good, older}, rootCA,
			remove(older) + ", " + remove(old), "", nil, "the bundle is published: deleting 2 of another content", ""},
		"a new root CA is published before the old one goes": {bundles{old}, rootCA, create, remove(old), good,
			"the bundle is missing", "the bundle is published: deleting 1 of another content"},
		"a changed one is put right before the old one goes": {bundles{old, changed}, rootCA, update, remove(old), repaired,
			"the bundle was changed", "the bundle is published: deleting 1 of another content"},
		"one on its way out is not deleted again": {bundles{good, leaving}, rootCA, "", "", nil, only, ""},
		"other signers are not our business":      {bundles{good, bundle("x", "example.com/x", "x"), bundle("y", "", "y")}, rootCA, "", "", nil, only, ""},
		"without a root CA nothing is deleted":    {bundles{old}, "", "", "", nil, "there is no root CA", ""},
	} {
		t.Run(test, func(t *testing.T) {
			before := changed.DeepCopy()
			p := plan(observed{tc.bundles, tc.rootCA, asBeta}, time.Time{})
			if got := fixture.Planned(p); got != tc.publish || p.Why != tc.why {
				t.Errorf("plans %q because %q", got, p.Why)
			}
			if diff := cmp.Diff(tc.written, written(p)); diff != "" {
				t.Error(diff)
			}
			if (p.Then != nil) != (tc.then != "") {
				t.Fatalf("plans on: %v", p.Then != nil)
			}
			if p.Then != nil {
				next := p.Then(act.Results{{Step: p.Stages[0].Steps[0], Became: act.Done}})
				if got := fixture.Planned(next); got != tc.remove || next.Why != tc.then {
					t.Errorf("then plans %q because %q", got, next.Why)
				}
			}
			if diff := cmp.Diff(before, changed); diff != "" {
				t.Errorf("the cached object was changed: %s", diff)
			}
		})
	}
}

// written is the bundle that a plan creates or puts, nil if none.
func written(p act.Plan) *certificatesv1beta1.ClusterTrustBundle {
	if len(p.Stages) > 0 {
		switch s := p.Stages[0].Steps[0].(type) {
		case act.Create:
			return s.Object.(*certificatesv1beta1.ClusterTrustBundle)
		case act.Update:
			return s.Object.(*certificatesv1beta1.ClusterTrustBundle)
		}
	}
	return nil
}

func TestTheNameFollowsFromTheContent(t *testing.T) {
	// The first half of the SHA-256 of the content, as sha256sum prints it.
	if got, want := nameOf("hello\n"), "kubernetes.io:kube-apiserver-serving:5891b5b522d5df086d0ff0b1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
