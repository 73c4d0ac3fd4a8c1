package app

import (
	"context"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/bootstraptokens"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/bootstrapsigner"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/rootcapublisher"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/serviceaccount"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/tokencleaner"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func serviceAccountControllers() []Controller {
	return []Controller{
		{Name: names.BootstrapSignerController, Account: "bootstrap-signer", New: newBootstrapSigner},
		{Name: names.LegacyServiceAccountTokenCleanerController, Start: startLegacyServiceAccountTokenCleanerController},
		{Name: names.RootCACertificatePublisherController, Account: "root-ca-cert-publisher", New: newRootCAPublisher},
		{Name: names.ServiceAccountController, Account: "service-account-controller", New: newServiceAccount},
		{Name: names.ServiceAccountTokenController, Start: startServiceAccountTokenController},
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
