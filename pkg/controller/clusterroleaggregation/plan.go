package clusterroleaggregation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	rbacapply "k8s.io/client-go/applyconfigurations/rbac/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// observed is a role and those that it selects, in order.
type observed struct {
	role *rbacv1.ClusterRole
	from []*rbacv1.ClusterRole
	// invalid is the error of a selector that the API server would not take.
	invalid error
}

// plan makes the rules of a role those of the roles it selects, whoever wrote them before.
func plan(o observed, _ time.Time) act.Plan {
	switch {
	case o.role.AggregationRule == nil:
		return act.Plan{Why: "the role is not aggregated"}
	case o.invalid != nil:
		return act.Plan{Why: "a selector is invalid", Terminal: o.invalid}
	}
	rules := union(o.from)
	if equality.Semantic.DeepEqual(rules, o.role.Rules) {
		return act.Plan{Why: fmt.Sprintf("it has the %d rules of %d roles", len(rules), len(o.from))}
	}
	// With the UID a role that was deleted meanwhile is not made again.
	want := rbacapply.ClusterRole(o.role.Name).WithUID(o.role.UID)
	for i := range rules {
		want.WithRules(ruleOf(&rules[i]))
	}
	return act.Plan{
		Why:    fmt.Sprintf("its rules differ from the %d rules of %d roles", len(rules), len(o.from)),
		Stages: act.Stages(act.Apply{Of: o.role, Configuration: want, Manager: name, Force: true}),
	}
}

func contains(rules []rbacv1.PolicyRule, rule rbacv1.PolicyRule) bool {
	return slices.ContainsFunc(rules, func(other rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(other, rule) })
}

func ruleOf(rule *rbacv1.PolicyRule) *rbacapply.PolicyRuleApplyConfiguration {
	return &rbacapply.PolicyRuleApplyConfiguration{
		Verbs: rule.Verbs, APIGroups: rule.APIGroups, Resources: rule.Resources,
		ResourceNames: rule.ResourceNames, NonResourceURLs: rule.NonResourceURLs,
	}
}

// errSelector is a selector that the API server would not take.
type errSelector struct {
	role string
	err  error
}

func (e *errSelector) Error() string {
	return fmt.Sprintf("selector of cluster role %s: %v", e.role, e.err)
}

func (e *errSelector) Unwrap() error { return e.err }

// sources are the roles to take rules from, selector by selector and each in the
// order of names. The order is part of the outcome, as rules are compared by it.
func sources(role *rbacv1.ClusterRole, selected func(labels.Selector) ([]*rbacv1.ClusterRole, error)) ([]*rbacv1.ClusterRole, error) {
	var from []*rbacv1.ClusterRole
	for i := range role.AggregationRule.ClusterRoleSelectors {
		selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
		if err != nil {
			return nil, &errSelector{role.Name, err}
		}
		found, err := selected(selector)
		if err != nil {
			return nil, err
		}
		found = slices.DeleteFunc(found, func(r *rbacv1.ClusterRole) bool { return r.Name == role.Name })
		slices.SortFunc(found, func(a, b *rbacv1.ClusterRole) int { return cmp.Compare(a.Name, b.Name) })
		from = append(from, found...)
	}
	return from, nil
}

// unrolled puts in the place of each role that selects the role of this name in turn, directly or
// through other roles, those that it selects itself. Roles that took rules from each other would
// keep what no other role has any more, or pass it round without end.
func unrolled(from []*rbacv1.ClusterRole, name string, selected func(labels.Selector) ([]*rbacv1.ClusterRole, error)) []*rbacv1.ClusterRole {
	seen := map[string]bool{name: true}
	var all []*rbacv1.ClusterRole
	for ; len(from) > 0; from = from[1:] {
		next := from[0]
		switch {
		case seen[next.Name]:
		case !leads(next, name, selected):
			all = append(all, next)
		default:
			seen[next.Name] = true
			more, _ := sources(next, selected) // what cannot be read selects nothing
			from = slices.Concat(from, more)
		}
	}
	return all
}

// leads reports whether a role selects the one of this name, directly or through other roles.
func leads(role *rbacv1.ClusterRole, name string, selected func(labels.Selector) ([]*rbacv1.ClusterRole, error)) bool {
	seen := map[string]bool{}
	for from := []*rbacv1.ClusterRole{role}; len(from) > 0; from = from[1:] {
		next := from[0]
		if next.Name == name {
			return true
		}
		if next.AggregationRule == nil || seen[next.Name] {
			continue
		}
		seen[next.Name] = true
		more, _ := sources(next, selected) // what cannot be read selects nothing
		from = slices.Concat(from, more)
	}
	return false
}

// union are the rules of the roles, each rule once.
func union(roles []*rbacv1.ClusterRole) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, role := range roles {
		for _, rule := range role.Rules {
			if !contains(rules, rule) {
				rules = append(rules, rule)
			}
		}
	}
	return rules
}

// concerns reports whether a change of a role can change the rules of roles that
// select it.
func concerns(before, after *rbacv1.ClusterRole) bool {
	if before == nil || after == nil {
		return true
	}
	return before.UID != after.UID || !equality.Semantic.DeepEqual(before.Rules, after.Rules) ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels)
}
