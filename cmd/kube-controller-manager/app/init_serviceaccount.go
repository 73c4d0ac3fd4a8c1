package app

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/serviceaccounttoken"
)

// startServiceAccountTokenController uses the root credentials: it makes the
// tokens that other credentials may be made of.
func startServiceAccountTokenController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	keyFile := cc.Config.SAController.ServiceAccountKeyFile
	if keyFile == "" {
		return nil, false, skip("--service-account-private-key-file is not set")
	}
	key, err := serviceaccounttoken.LoadKey(keyFile)
	if err != nil {
		return nil, false, err
	}
	rootCA, err := cc.rootCA()
	if err != nil {
		return nil, false, err
	}
	config, err := cc.RootClients.Config("tokens-controller")
	if err != nil {
		return nil, false, fmt.Errorf("configure the root client: %w", err)
	}
	hand, err := cc.handOf(ctx, config, "")
	if err != nil {
		return nil, false, err
	}
	tokens := cc.narrowed(serviceaccounttoken.Informers).Core().V1().Secrets()
	c, err := serviceaccounttoken.New(cc.Informers.Core().V1().ServiceAccounts(), tokens, hand,
		serviceaccounttoken.Options{Key: key, RootCA: rootCA, Workers: int(cc.Config.SAController.ConcurrentSATokenSyncs)})
	return cc.run(ctx, c, err)
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
