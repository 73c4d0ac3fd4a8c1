package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var legacyTokenCleaner = section{
	controller: names.LegacyServiceAccountTokenCleanerController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		o := &c.LegacySATokenCleaner
		fs.DurationVar(&o.CleanUpPeriod.Duration, "legacy-service-account-token-clean-up-period", o.CleanUpPeriod.Duration,
			"How long a generated token Secret must be unused before it is invalidated, and how long it then stays before it is deleted.")
	},
	check: func(p *problems, s *settings) {
		p.notNegative("legacy-service-account-token-clean-up-period", s.LegacySATokenCleaner.CleanUpPeriod.Duration)
	},
}
