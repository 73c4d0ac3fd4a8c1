package clustertrustbundlepublisher

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	rootCA = "-----BEGIN CERTIFICATE-----"
)

func bundle(name, signer, content string) *certificatesv1beta1.ClusterTrustBundle {
	b := &certificatesv1beta1.ClusterTrustBundle{}
	b.Name, b.Spec.SignerName, b.Spec.TrustBundle = name, signer, content
	return b
}

func TestDecide(t *testing.T) {
	name := nameOf(rootCA)
	good := bundle(name, SignerName, rootCA)
	old, older := bundle("kubernetes.io:kube-apiserver-serving:b", SignerName, "x"), bundle("kubernetes.io:kube-apiserver-serving:a", SignerName, "y")
	leaving := old.DeepCopy()
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	changed := bundle(name, SignerName, "forged")
	changed.Annotations = map[string]string{"note": "kept"}
	repaired := changed.DeepCopy()
	repaired.Spec.TrustBundle = rootCA
	type bundles = []*certificatesv1beta1.ClusterTrustBundle
	for test, tc := range map[string]struct {
		bundles bundles
		rootCA  string
		want    plan
	}{
		"a missing bundle is created":               {nil, rootCA, plan{create: good, Publish: name, Why: "the bundle is missing"}},
		"a good one is left alone":                  {bundles{good}, rootCA, plan{Why: "nothing differs"}},
		"a changed one is put right, the rest kept": {bundles{changed}, rootCA, plan{update: repaired, Publish: name, Why: "the bundle was changed"}},
		"others of the signer are deleted, in order of their names": {bundles{old, good, older}, rootCA,
			plan{remove: bundles{older, old}, Remove: []string{older.Name, old.Name}, Why: "nothing differs"}},
		"a new root CA is published before the old one goes": {bundles{old}, rootCA,
			plan{create: good, Publish: name, remove: bundles{old}, Remove: []string{old.Name}, Why: "the bundle is missing"}},
		"one on its way out is not deleted again": {bundles{good, leaving}, rootCA, plan{Why: "nothing differs"}},
		"other signers are not our business":      {bundles{good, bundle("x", "example.com/x", "x"), bundle("y", "", "y")}, rootCA, plan{Why: "nothing differs"}},
		"without a root CA nothing is deleted":    {bundles{old}, "", plan{Why: "there is no root CA"}},
	} {
		t.Run(test, func(t *testing.T) {
			before := changed.DeepCopy()
			if diff := cmp.Diff(tc.want, decide(tc.bundles, tc.rootCA), cmp.AllowUnexported(plan{})); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, changed); diff != "" {
				t.Errorf("the cached object was changed: %s", diff)
			}
		})
	}
}

func TestTheNameFollowsFromTheContent(t *testing.T) {
	// The first half of the SHA-256 of the content, as sha256sum prints it.
	if got, want := nameOf("hello\n"), "kubernetes.io:kube-apiserver-serving:5891b5b522d5df086d0ff0b1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
