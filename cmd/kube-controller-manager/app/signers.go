package app

import (
	certificatesv1 "k8s.io/api/certificates/v1"
	kcmconfig "k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/csrsigning"
)

// signersOf returns the files of each signer that has any: its own, or those of
// --cluster-signing-{cert,key}-file. The options see to it that both are not set.
func signersOf(config kcmconfig.CSRSigningControllerConfiguration) map[string]csrsigning.Files {
	signers := map[string]csrsigning.Files{}
	for name, files := range ownFilesOf(config) {
		if files.Cert == "" && files.Key == "" {
			files = csrsigning.Files{Cert: config.ClusterSigningCertFile, Key: config.ClusterSigningKeyFile}
		}
		if files.Cert != "" && files.Key != "" {
			signers[name] = files
		}
	}
	return signers
}

// ownFilesOf returns the files of the flags of single signers.
func ownFilesOf(config kcmconfig.CSRSigningControllerConfiguration) map[string]csrsigning.Files {
	own := map[string]csrsigning.Files{}
	for name, files := range map[string]kcmconfig.CSRSigningConfiguration{
		certificatesv1.KubeletServingSignerName:             config.KubeletServingSignerConfiguration,
		certificatesv1.KubeAPIServerClientKubeletSignerName: config.KubeletClientSignerConfiguration,
		certificatesv1.KubeAPIServerClientSignerName:        config.KubeAPIServerClientSignerConfiguration,
		csrsigning.LegacyUnknown:                            config.LegacyUnknownSignerConfiguration,
	} {
		own[name] = csrsigning.Files{Cert: files.CertFile, Key: files.KeyFile}
	}
	return own
}
