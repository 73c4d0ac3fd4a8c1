package options

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/serviceaccounttoken"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
)

// serviceAccount holds the flags of the ServiceAccount token controller, too, and
// of what publishes the root CA.
var serviceAccount = section{
	controller: names.ServiceAccountController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		o := &c.SAController
		fs.StringVar(&o.ServiceAccountKeyFile, "service-account-private-key-file", o.ServiceAccountKeyFile,
			"File with the PEM-encoded RSA or ECDSA private key that signs the tokens in Secrets. Without it no such tokens are created.")
		fs.Int32Var(&o.ConcurrentSATokenSyncs, "concurrent-serviceaccount-token-syncs", o.ConcurrentSATokenSyncs,
			"How many token Secrets are synced at a time. More is faster and costs more CPU and network.")
		fs.StringVar(&o.RootCAFile, "root-ca-file", o.RootCAFile,
			"File with the PEM-encoded CA bundle for token Secrets and for the ConfigMap kube-root-ca.crt of every namespace.")
	},
	check: checkServiceAccount,
}

// checkServiceAccount reads the files that a controller will read. The token controller runs
// whatever --controllers says, if it has a key.
func checkServiceAccount(p *problems, s *settings) {
	o := s.SAController
	p.workers("concurrent-serviceaccount-token-syncs", o.ConcurrentSATokenSyncs)
	if o.ServiceAccountKeyFile != "" {
		if _, err := serviceaccounttoken.ReadKey(o.ServiceAccountKeyFile); err != nil {
			p.with("service-account-private-key-file", o.ServiceAccountKeyFile,
				fmt.Errorf("error reading key for service account token controller: %w", err))
		}
	}
	published := s.enabled(names.RootCACertificatePublisherController) ||
		s.gates.Enabled(features.ClusterTrustBundle) && s.enabled(names.KubeAPIServerServingClusterTrustBundlePublisherController)
	if o.RootCAFile != "" && (o.ServiceAccountKeyFile != "" || published) {
		if err := holdsCertificates(o.RootCAFile); err != nil {
			p.with("root-ca-file", o.RootCAFile, fmt.Errorf("error parsing root-ca-file at %s: %w", o.RootCAFile, err))
		}
	}
}
