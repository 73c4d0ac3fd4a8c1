package app

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/metadata"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/legacytokencleaner"
)

// startLegacyServiceAccountTokenCleanerController lists with the credentials of
// the caches: the account of the controller may not.
func startLegacyServiceAccountTokenCleanerController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	const account = "legacy-service-account-token-cleaner"
	client, err := cc.Client(account)
	if err != nil {
		return nil, false, err
	}
	reader, err := cc.RootClients.Client(account)
	if err != nil {
		return nil, false, fmt.Errorf("make the listing client of %s: %w", account, err)
	}
	config, err := cc.RootClients.Config(account)
	if err != nil {
		return nil, false, fmt.Errorf("configure the metadata client of %s: %w", account, err)
	}
	tokens, err := metadata.NewForConfig(config)
	if err != nil {
		return nil, false, fmt.Errorf("make the metadata client of %s: %w", account, err)
	}
	c, err := legacytokencleaner.New(cc.Informers.Core().V1().ServiceAccounts(), client, reader, tokens, legacytokencleaner.Options{
		CleanUpPeriod: cc.Config.LegacySATokenCleaner.CleanUpPeriod.Duration, Clock: cc.Clock,
	})
	return cc.run(ctx, c, err)
}
