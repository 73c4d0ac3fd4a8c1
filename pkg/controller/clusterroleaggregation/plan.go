package clusterroleaggregation

import (
	"cmp"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// plan says what rules to apply, if any.
type plan struct {
	apply []rbacv1.PolicyRule
	Write bool   `json:"write"`
	From  int    `json:"from,omitempty"`
	Rules int    `json:"rules,omitempty"`
	Why   string `json:"why"`
}

// decide compares the rules of a role with those of the roles it selects.
func decide(role *rbacv1.ClusterRole, selected func(labels.Selector) ([]*rbacv1.ClusterRole, error)) (plan, error) {
	switch {
	case role == nil:
		return plan{Why: "the role is gone"}, nil
	case role.AggregationRule == nil:
		return plan{Why: "the role is not aggregated"}, nil
	}
	from, err := sources(role, selected)
	if err != nil {
		return plan{Why: "a selector is invalid"}, err
	}
	do := plan{apply: union(from), From: len(from), Why: "the rules are right"}
	do.Rules = len(do.apply)
	if !equality.Semantic.DeepEqual(do.apply, role.Rules) {
		do.Write, do.Why = true, "the rules of the selected roles are others"
	}
	return do, nil
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
		found = slices.DeleteFunc(slices.Clone(found), func(r *rbacv1.ClusterRole) bool {
			return r.Name == role.Name || !selector.Matches(labels.Set(r.Labels))
		})
		slices.SortFunc(found, func(a, b *rbacv1.ClusterRole) int { return cmp.Compare(a.Name, b.Name) })
		from = append(from, found...)
	}
	return from, nil
}

// union are the rules of the roles, each rule once.
func union(roles []*rbacv1.ClusterRole) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, role := range roles {
		for _, rule := range role.Rules {
			same := func(other rbacv1.PolicyRule) bool { return equality.Semantic.DeepEqual(other, rule) }
			if !slices.ContainsFunc(rules, same) {
				rules = append(rules, rule)
			}
		}
	}
	return rules
}

// concerns tells whether a change of a role can change the rules of roles that
// select it.
func concerns(before, after *rbacv1.ClusterRole) bool {
	if before == nil || after == nil {
		return true
	}
	return before.UID != after.UID || !equality.Semantic.DeepEqual(before.Rules, after.Rules) ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels)
}
