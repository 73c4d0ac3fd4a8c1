package app

import (
	"context"
	"fmt"

	"k8s.io/client-go/rest"
	kcmconfig "k8s.io/kube-controller-manager/config/v1alpha1"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/bootstraptokens"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/bootstrapsigner"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/legacytokencleaner"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/rootcapublisher"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/serviceaccount"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/serviceaccounttoken"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/tokencleaner"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func serviceAccountControllers() []Controller {
	return []Controller{
		{Name: names.BootstrapSignerController, Account: "bootstrap-signer", New: newBootstrapSigner},
		{Name: names.LegacyServiceAccountTokenCleanerController, Account: "legacy-service-account-token-cleaner", New: newLegacyTokenCleaner},
		{Name: names.RootCACertificatePublisherController, Account: "root-ca-cert-publisher", New: newRootCAPublisher},
		{Name: names.ServiceAccountController, Account: "service-account-controller", New: newServiceAccount},
		// It makes the tokens that other credentials may be made of.
		{Name: names.ServiceAccountTokenController, Account: "tokens-controller", Root: true,
			Without: func(c *kcmconfig.KubeControllerManagerConfiguration) string {
				if c.SAController.ServiceAccountKeyFile == "" {
					return "--service-account-private-key-file is not set"
				}
				return ""
			},
			New: newServiceAccountToken},
		{Name: names.TokenCleanerController, Account: "token-cleaner", New: newTokenCleaner},
	}
}

func newBootstrapSigner(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	info := cc.narrowed(bootstrapsigner.Informers).Core().V1().ConfigMaps()
	tokens := cc.narrowed(bootstraptokens.Informers).Core().V1().Secrets()
	return bootstrapsigner.New(info, tokens, hand)
}

func newRootCAPublisher(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	rootCA, err := cc.rootCA()
	if err != nil {
		return nil, err
	}
	published := cc.narrowed(rootcapublisher.Informers).Core().V1().ConfigMaps()
	return rootcapublisher.New(cc.Informers.Core().V1().Namespaces(), published, rootCA, hand)
}

func newServiceAccount(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	core := cc.Informers.Core().V1()
	return serviceaccount.New(core.Namespaces(), core.ServiceAccounts(), hand)
}

func newTokenCleaner(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	return tokencleaner.New(cc.narrowed(bootstraptokens.Informers).Core().V1().Secrets(), hand)
}

// newLegacyTokenCleaner lists with the credentials of the caches: the account of
// the controller may not.
func newLegacyTokenCleaner(ctx context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	lists, err := cc.handFor(ctx, Controller{Account: cc.row.Account, Root: true})
	if err != nil {
		return nil, err
	}
	return legacytokencleaner.New(cc.Informers.Core().V1().ServiceAccounts(), lists.Reader(), hand, legacytokencleaner.Options{
		CleanUpPeriod: cc.Config.LegacySATokenCleaner.CleanUpPeriod.Duration,
	})
}

func newServiceAccountToken(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	config := cc.Config.SAController
	key, err := serviceaccounttoken.LoadKey(config.ServiceAccountKeyFile)
	if err != nil {
		return nil, err
	}
	rootCA, err := cc.rootCA()
	if err != nil {
		return nil, err
	}
	tokens := cc.narrowed(serviceaccounttoken.Informers).Core().V1().Secrets()
	return serviceaccounttoken.New(cc.Informers.Core().V1().ServiceAccounts(), tokens, hand,
		serviceaccounttoken.Options{Key: key, RootCA: rootCA, Workers: int(config.ConcurrentSATokenSyncs)})
}

// rootCA is the bundle of --root-ca-file, or the one that this process trusts.
func (cc ControllerContext) rootCA() ([]byte, error) {
	if file := cc.Config.SAController.RootCAFile; file != "" {
		return serviceaccounttoken.LoadRootCA(file)
	}
	config := rest.CopyConfig(cc.process.Kubeconfig)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("load the CA of --kubeconfig: %w", err)
	}
	return config.CAData, nil
}
