package options

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/spf13/pflag"
)

var admissionPolicyStatus = section{
	controller: names.ValidatingAdmissionPolicyStatusController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		fs.Int32Var(&c.ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs, "concurrent-validating-admission-policy-status-syncs", c.ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs,
			"How many ValidatingAdmissionPolicies are type-checked at a time.")
	},
	check: func(p *problems, s *settings) {
		p.workers("concurrent-validating-admission-policy-status-syncs", s.ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs)
	},
}
