package app

import (
	"context"
	"fmt"
	"net/http"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/legacytokencleaner"
)

// startLegacyServiceAccountTokenCleanerController lists with the credentials of
// the caches: the account of the controller may not.
func startLegacyServiceAccountTokenCleanerController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	const account = "legacy-service-account-token-cleaner"
	hand, err := cc.hand(ctx, account, "")
	if err != nil {
		return nil, false, err
	}
	config, err := cc.RootClients.Config(account)
	if err != nil {
		return nil, false, fmt.Errorf("configure the listing client of %s: %w", account, err)
	}
	lists, err := cc.handOf(ctx, config, "")
	if err != nil {
		return nil, false, err
	}
	c, err := legacytokencleaner.New(cc.Informers.Core().V1().ServiceAccounts(), lists.Reader(), hand, legacytokencleaner.Options{
		CleanUpPeriod: cc.Config.LegacySATokenCleaner.CleanUpPeriod.Duration,
	})
	return cc.run(ctx, c, err)
}
