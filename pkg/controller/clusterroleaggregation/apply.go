package clusterroleaggregation

import (
	"context"
	"fmt"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	rbacapply "k8s.io/client-go/applyconfigurations/rbac/v1"
)

// apply makes these the rules of the role, whoever wrote them before.
func (c *Controller) apply(ctx context.Context, role *rbacv1.ClusterRole, rules []rbacv1.PolicyRule) error {
	// With the UID a role that was deleted meanwhile is not made again.
	want := rbacapply.ClusterRole(role.Name).WithUID(role.UID)
	for i := range rules {
		want.WithRules(ruleOf(&rules[i]))
	}
	applied, err := c.client.RbacV1().ClusterRoles().Apply(ctx, want, metav1.ApplyOptions{FieldManager: name, Force: true})
	if err != nil {
		return fmt.Errorf("apply the rules of cluster role %s: %w", role.Name, err)
	}
	c.writes.Wrote(role.Name, roleResource, applied)
	return nil
}

func ruleOf(rule *rbacv1.PolicyRule) *rbacapply.PolicyRuleApplyConfiguration {
	return &rbacapply.PolicyRuleApplyConfiguration{
		Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources,
		ResourceNames: rule.ResourceNames, NonResourceURLs: rule.NonResourceURLs,
	}
}
