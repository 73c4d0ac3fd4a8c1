package app

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/util/cert"
	kcmconfig "k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/csrsigning"
)

// signWithOwnCA sets --cluster-signing-{cert,key}-file to a new authority.
func signWithOwnCA(t *testing.T, config *kcmconfig.CSRSigningControllerConfiguration) {
	t.Helper()
	certificate, key, err := cert.GenerateSelfSignedCertKey("authority", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	config.ClusterSigningCertFile, config.ClusterSigningKeyFile = filepath.Join(dir, "ca.crt"), filepath.Join(dir, "ca.key")
	// What is generated is the certificate and its issuer; only the first belongs to the key.
	first, err := cert.ParseCertsPEM(certificate)
	if err != nil {
		t.Fatal(err)
	}
	if certificate, err = cert.EncodeCertificates(first[0]); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{config.ClusterSigningCertFile: certificate, config.ClusterSigningKeyFile: key} {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSignersOf(t *testing.T) {
	all := []string{certificatesv1.KubeAPIServerClientSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName,
		certificatesv1.KubeletServingSignerName, csrsigning.LegacyUnknown}
	for name, tc := range map[string]struct {
		config kcmconfig.CSRSigningControllerConfiguration
		want   []string
	}{
		"without files nobody signs": {},
		"half of a pair is no pair":  {config: kcmconfig.CSRSigningControllerConfiguration{ClusterSigningCertFile: "c"}},
		"one pair does for all": {
			config: kcmconfig.CSRSigningControllerConfiguration{ClusterSigningCertFile: "c", ClusterSigningKeyFile: "k"}, want: all},
		"a signer with files of its own signs alone": {
			config: kcmconfig.CSRSigningControllerConfiguration{KubeletServingSignerConfiguration: kcmconfig.CSRSigningConfiguration{CertFile: "c", KeyFile: "k"}},
			want:   []string{certificatesv1.KubeletServingSignerName}},
		"each of the four flags is for its signer": {
			config: kcmconfig.CSRSigningControllerConfiguration{
				KubeletServingSignerConfiguration:      kcmconfig.CSRSigningConfiguration{CertFile: "c", KeyFile: "k"},
				KubeletClientSignerConfiguration:       kcmconfig.CSRSigningConfiguration{CertFile: "c", KeyFile: "k"},
				KubeAPIServerClientSignerConfiguration: kcmconfig.CSRSigningConfiguration{CertFile: "c", KeyFile: "k"},
				LegacyUnknownSignerConfiguration:       kcmconfig.CSRSigningConfiguration{CertFile: "c", KeyFile: "k"},
			}, want: all},
	} {
		t.Run(name, func(t *testing.T) {
			got := signersOf(tc.config)
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(got))); diff != "" {
				t.Error(diff)
			}
			for signer, files := range got {
				if files != (csrsigning.Files{Cert: "c", Key: "k"}) {
					t.Errorf("%s signs with %+v", signer, files)
				}
			}
		})
	}
}
