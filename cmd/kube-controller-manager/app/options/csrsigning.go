package options

import (
	"errors"
	"fmt"

	"github.com/spf13/pflag"
	kcmv1alpha1 "k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

var csrSigning = section{
	controller: names.CertificateSigningRequestSigningController,
	flags:      csrSigningFlags,
	check:      checkCSRSigning,
}

// signer is one of the signers that may have a CA of its own.
type signer struct {
	flags string // what its flags begin with
	name  string
	files func(c *kcmv1alpha1.CSRSigningControllerConfiguration) *kcmv1alpha1.CSRSigningConfiguration
}

var signers = []signer{
	{"cluster-signing-kubelet-serving", "kubernetes.io/kubelet-serving",
		func(c *kcmv1alpha1.CSRSigningControllerConfiguration) *kcmv1alpha1.CSRSigningConfiguration {
			return &c.KubeletServingSignerConfiguration
		}},
	{"cluster-signing-kubelet-client", "kubernetes.io/kube-apiserver-client-kubelet",
		func(c *kcmv1alpha1.CSRSigningControllerConfiguration) *kcmv1alpha1.CSRSigningConfiguration {
			return &c.KubeletClientSignerConfiguration
		}},
	{"cluster-signing-kube-apiserver-client", "kubernetes.io/kube-apiserver-client",
		func(c *kcmv1alpha1.CSRSigningControllerConfiguration) *kcmv1alpha1.CSRSigningConfiguration {
			return &c.KubeAPIServerClientSignerConfiguration
		}},
	{"cluster-signing-legacy-unknown", "kubernetes.io/legacy-unknown",
		func(c *kcmv1alpha1.CSRSigningControllerConfiguration) *kcmv1alpha1.CSRSigningConfiguration {
			return &c.LegacyUnknownSignerConfiguration
		}},
}

func csrSigningFlags(fs *pflag.FlagSet, c *configuration) {
	o := &c.CSRSigningController
	fs.StringVar(&o.ClusterSigningCertFile, "cluster-signing-cert-file", o.ClusterSigningCertFile,
		"File with the PEM-encoded CA certificate that is used for all signers. Cannot be combined with the flags for single signers.")
	fs.StringVar(&o.ClusterSigningKeyFile, "cluster-signing-key-file", o.ClusterSigningKeyFile,
		"A file with the key of --cluster-signing-cert-file: a PEM-encoded RSA or ECDSA private key.")
	for _, s := range signers {
		files := s.files(o)
		fs.StringVar(&files.CertFile, s.flags+"-cert-file", files.CertFile,
			fmt.Sprintf("File with the PEM-encoded CA certificate that is used only for the signer %s. Cannot be combined with --cluster-signing-{cert,key}-file.", s.name))
		fs.StringVar(&files.KeyFile, s.flags+"-key-file", files.KeyFile,
			fmt.Sprintf("A file with the key of --%s-cert-file: a PEM-encoded RSA or ECDSA private key.", s.flags))
	}
	fs.DurationVar(&o.ClusterSigningDuration.Duration, "cluster-signing-duration", o.ClusterSigningDuration.Duration,
		"The longest time for which signed certificates are valid. A request may ask for less with spec.expirationSeconds.")
}

func checkCSRSigning(p *problems, s *settings) {
	o := &s.CSRSigningController
	p.positive("cluster-signing-duration", o.ClusterSigningDuration.Duration)
	running := s.enabled(names.CertificateSigningRequestSigningController)
	single := false
	for _, signer := range signers {
		files := signer.files(o)
		single = single || files.CertFile != "" || files.KeyFile != ""
		switch {
		case files.CertFile != "" && files.KeyFile == "":
			p.addf("%q: cannot specify cert without key, got the cert %q", signer.flags, files.CertFile)
		case files.CertFile == "" && files.KeyFile != "":
			p.addf("%q: cannot specify key without cert, got the key %q", signer.flags, files.KeyFile)
		case running:
			p.signingFiles(signer.flags, files.CertFile, files.KeyFile)
		}
	}
	if single && (o.ClusterSigningCertFile != "" || o.ClusterSigningKeyFile != "") {
		p.add(errors.New("cannot specify --cluster-signing-{cert,key}-file and other --cluster-signing-*-file flags at the same time"))
	} else if running {
		p.signingFiles("cluster-signing", o.ClusterSigningCertFile, o.ClusterSigningKeyFile)
	}
}

// signingFiles refuses files that nothing can be signed with. Half a pair for
// all signers is not refused: it means that nothing is signed.
func (p *problems) signingFiles(flags, certFile, keyFile string) {
	if certFile == "" || keyFile == "" {
		return
	}
	if err := holdAuthority(certFile, keyFile); err != nil {
		p.addf("--%s-cert-file=%s --%s-key-file=%s: error reading CA cert file %q: %w", flags, certFile, flags, keyFile, certFile, err)
	}
}
