package validatingadmissionpolicystatus

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	admissionapply "k8s.io/client-go/applyconfigurations/admissionregistration/v1"
)

// fieldManager owns the fields of the status.
const fieldManager = queue

// apply reports the warnings as those of the policy's generation.
func (c *Controller) apply(ctx context.Context, policy *admissionv1.ValidatingAdmissionPolicy, warnings []admissionv1.ExpressionWarning) error {
	checking := admissionapply.TypeChecking()
	for _, warning := range warnings {
		checking.WithExpressionWarnings(admissionapply.ExpressionWarning().WithFieldRef(warning.FieldRef).WithWarning(warning.Warning))
	}
	// With the UID a policy that was made anew meanwhile does not count as checked.
	want := admissionapply.ValidatingAdmissionPolicy(policy.Name).WithUID(policy.UID).WithStatus(admissionapply.ValidatingAdmissionPolicyStatus().
		WithObservedGeneration(policy.Generation).WithTypeChecking(checking))
	applied, err := c.client.AdmissionregistrationV1().ValidatingAdmissionPolicies().ApplyStatus(ctx, want,
		metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil {
		return fmt.Errorf("apply the status of validating admission policy %s: %w", policy.Name, err)
	}
	c.writes.Wrote(policy.Name, policyResource, applied)
	return nil
}
