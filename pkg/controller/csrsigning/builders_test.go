package csrsigning

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
	"github.com/kube-kcm/kube-controller-manager/test/certs"
)

const (
	serving   = certificatesv1.KubeletServingSignerName
	kubelet   = certificatesv1.KubeAPIServerClientKubeletSignerName
	apiClient = certificatesv1.KubeAPIServerClientSignerName

	node        = "O=system:nodes CN=system:node:a "
	clientUse   = "digital signature,key encipherment,client auth"
	servingUse  = "digital signature,key encipherment,server auth"
	approved    = certificatesv1.CertificateApproved
	denied      = certificatesv1.CertificateDenied
	failed      = certificatesv1.CertificateFailed
	plainClient = "client auth"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// newAuthority returns the PEM texts of an authority that ends then.
func newAuthority(t testing.TB, name string, end time.Time) content {
	t.Helper()
	cert, key, err := certs.Authority(name, noon.Add(-time.Hour), end)
	if err != nil {
		t.Fatal(err)
	}
	return content{cert, key}
}

func authorityOf(t testing.TB, held content) *certificates.Authority {
	t.Helper()
	authority, err := certificates.ParseAuthority(held.cert, held.key)
	if err != nil {
		t.Fatal(err)
	}
	return authority
}

// in writes the pair to a directory.
func in(t testing.TB, dir string, held content) Files {
	t.Helper()
	files := Files{Cert: filepath.Join(dir, "ca.crt"), Key: filepath.Join(dir, "ca.key")}
	for path, text := range map[string][]byte{files.Cert: held.cert, files.Key: held.key} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

func usageList(list string) []certificatesv1.KeyUsage {
	var all []certificatesv1.KeyUsage
	for usage := range strings.SplitSeq(list, ",") {
		all = append(all, certificatesv1.KeyUsage(usage))
	}
	return all
}

func request(t testing.TB, signer, words, usages string, conditions ...certificatesv1.RequestConditionType) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	text, err := certs.Request(words)
	if err != nil {
		t.Fatal(err)
	}
	csr := &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
		SignerName: signer, Request: text, Usages: usageList(usages),
	}}
	csr.Name = "mine"
	for _, kind := range conditions {
		csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: corev1.ConditionTrue, Reason: "Test"})
	}
	return csr
}
