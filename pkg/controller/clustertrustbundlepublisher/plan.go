package clustertrustbundlepublisher

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// SignerName is the signer that the published bundle belongs to.
	SignerName = "kubernetes.io/kube-apiserver-serving"

	// hashLength is how much of the hash of the content is in the name.
	hashLength = 24
)

// plan says what to write, in this order; at most one of create and update is set.
type plan struct {
	create, update *certificatesv1beta1.ClusterTrustBundle
	remove         []*certificatesv1beta1.ClusterTrustBundle
	Publish        string   `json:"publish,omitempty"`
	Remove         []string `json:"remove,omitempty"`
	Why            string   `json:"why"`
}

// decide compares the bundles of the signer with the one that has to be there.
func decide(bundles []*certificatesv1beta1.ClusterTrustBundle, rootCA string) plan {
	if rootCA == "" {
		return plan{Why: "there is no root CA"}
	}
	want := certificatesv1beta1.ClusterTrustBundle{
		ObjectMeta: metav1.ObjectMeta{Name: nameOf(rootCA)},
		Spec:       certificatesv1beta1.ClusterTrustBundleSpec{SignerName: SignerName, TrustBundle: rootCA},
	}
	do := plan{create: &want, Publish: want.Name, Why: "the bundle is missing"}
	for _, bundle := range bundles {
		switch {
		case bundle.Spec.SignerName != SignerName:
		case bundle.Name != want.Name:
			if bundle.DeletionTimestamp == nil {
				do.remove = append(do.remove, bundle)
			}
		case bundle.Spec.TrustBundle == rootCA:
			do.create, do.Publish, do.Why = nil, "", "nothing differs"
		default:
			do.update = bundle.DeepCopy()
			do.update.Spec.TrustBundle = rootCA
			do.create, do.Why = nil, "the bundle was changed"
		}
	}
	slices.SortFunc(do.remove, func(a, b *certificatesv1beta1.ClusterTrustBundle) int { return cmp.Compare(a.Name, b.Name) })
	for _, bundle := range do.remove {
		do.Remove = append(do.Remove, bundle.Name)
	}
	return do
}

// nameOf is the name of the bundle with this content: another content gets
// another name, so that no manager overwrites what another one publishes.
func nameOf(rootCA string) string {
	hash := sha256.Sum256([]byte(rootCA))
	return strings.ReplaceAll(SignerName, "/", ":") + ":" + hex.EncodeToString(hash[:])[:hashLength]
}
