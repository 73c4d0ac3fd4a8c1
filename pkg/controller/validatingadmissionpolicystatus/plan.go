package validatingadmissionpolicystatus

import (
	"fmt"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	admissionapply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// fieldManager owns the fields of the status.
const fieldManager = queue

// observed is a policy, nil if it is gone, and what came of its check.
type observed struct {
	policy   *admissionv1.ValidatingAdmissionPolicy
	warnings []admissionv1.ExpressionWarning
	// left are the types that were left out of the check.
	left []string
	// err is why the check has come to nothing.
	err error
	// keeps reports whether schemas were kept from before. The key that was checked last
	// comes again to have them dropped.
	keeps bool
}

// unchecked reports whether a policy has a generation that was not checked.
func unchecked(policy *admissionv1.ValidatingAdmissionPolicy) bool {
	return policy.Generation > policy.Status.ObservedGeneration
}

// plan reports what came of a check as that of the policy's generation.
func plan(o observed, _ time.Time) act.Plan {
	var again time.Duration
	if o.keeps {
		again = keepSchemas
	}
	switch {
	case o.policy == nil:
		return act.Plan{Why: "the policy is gone", RequeueAfter: again}
	case !unchecked(o.policy):
		return act.Plan{Why: fmt.Sprintf("generation %d was checked", o.policy.Generation), RequeueAfter: again}
	case o.err != nil:
		return act.Plan{Why: fmt.Sprintf("generation %d cannot be checked now", o.policy.Generation), Err: o.err}
	}
	why := fmt.Sprintf("generation %d was not checked: found %d warnings", o.policy.Generation, len(o.warnings))
	if len(o.left) > 0 {
		why += ", left out " + strings.Join(o.left, ", ")
	}
	return act.Plan{Why: why, Stages: act.Stages(report(o)), RequeueAfter: keepSchemas}
}

func report(o observed) act.Step {
	checking := admissionapply.TypeChecking()
	for _, warning := range o.warnings {
		checking.WithExpressionWarnings(admissionapply.ExpressionWarning().WithFieldRef(warning.FieldRef).WithWarning(warning.Warning))
	}
	// With the UID, a policy that was deleted and created again meanwhile does not count as checked.
	return act.Apply{
		Of: o.policy, Manager: fieldManager, Force: true, Subresource: "status",
		Configuration: admissionapply.ValidatingAdmissionPolicy(o.policy.Name).WithUID(o.policy.UID).
			WithStatus(admissionapply.ValidatingAdmissionPolicyStatus().WithObservedGeneration(o.policy.Generation).WithTypeChecking(checking)),
	}
}
