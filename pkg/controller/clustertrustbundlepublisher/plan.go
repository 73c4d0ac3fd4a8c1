package clustertrustbundlepublisher

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	// SignerName is the signer that the published bundle belongs to.
	SignerName = "kubernetes.io/kube-apiserver-serving"

	// hashLength is how much of the hash of the content is in the name.
	hashLength = 24
	// untilCached is how long the cache has to show a bundle that somebody else created.
	untilCached = time.Second
)

// observed are the bundles of the signer, and what has to be published.
type observed struct {
	bundles []*certificatesv1beta1.ClusterTrustBundle
	rootCA  string
	// written is a bundle in the version in which it is written.
	written func(*certificatesv1beta1.ClusterTrustBundle) client.Object
}

// plan publishes first: as long as that fails, the old bundles stay.
func plan(o observed, _ time.Time) act.Plan {
	if o.rootCA == "" {
		return act.Plan{Why: "there is no root CA"}
	}
	want := &certificatesv1beta1.ClusterTrustBundle{
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(o.rootCA)},
		Spec:       certificatesv1beta1.ClusterTrustBundleSpec{SignerName: SignerName, TrustBundle: o.rootCA},
	}
	removed := removal(o, want.Name)
	i := slices.IndexFunc(o.bundles, func(b *certificatesv1beta1.ClusterTrustBundle) bool {
		return b.Name == want.Name && b.Spec.SignerName == SignerName
	})
	switch {
	case i < 0:
		return act.Plan{
			Why:    "the bundle is missing",
			Stages: act.Stages(act.Create{Object: o.written(want), MayExist: true}),
			Then: func(r act.Results) act.Plan {
				if r[0].Became == act.Existed { // it may be a wrong one
					return act.Plan{Why: "somebody else created the bundle", RequeueAfter: untilCached}
				}
				return removed
			},
		}
	case o.bundles[i].Spec.TrustBundle != o.rootCA:
		repaired := o.bundles[i].DeepCopy()
		repaired.Spec.TrustBundle = o.rootCA
		return act.Plan{
			Why:    "the bundle was changed",
			Stages: act.Stages(act.Update{Object: o.written(repaired), Required: true}),
			Then:   func(act.Results) act.Plan { return removed },
		}
	}
	return removed
}

// removal deletes the other bundles of the signer.
func removal(o observed, kept string) act.Plan {
	var others []act.Step
	for _, bundle := range slices.SortedFunc(slices.Values(o.bundles), func(a, b *certificatesv1beta1.ClusterTrustBundle) int {
		return cmp.Compare(a.Name, b.Name)
	}) {
		if bundle.Spec.SignerName == SignerName && bundle.Name != kept && bundle.DeletionTimestamp == nil {
			others = append(others, act.Delete{Of: o.written(bundle)})
		}
	}
	if len(others) == 0 {
		return act.Plan{Why: "it is complete: the bundle is published, and it is the only one"}
	}
	return act.Plan{
		Why:    fmt.Sprintf("the bundle is published: deleting %d of another content", len(others)),
		Stages: []act.Stage{act.EachInTurn(others...)},
	}
}

// nameOf is the name of the bundle with this content: another content gets
// another name, so that no manager overwrites what another one publishes.
func nameOf(rootCA string) string {
	hash := sha256.Sum256([]byte(rootCA))
	return strings.ReplaceAll(SignerName, "/", ":") + ":" + hex.EncodeToString(hash[:])[:hashLength]
}
