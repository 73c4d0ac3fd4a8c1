package clusterroleaggregation

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
)

// anyLabel is the value under which aggregated roles are found that require no label.
const anyLabel = ""

var (
	// rolesByLabel finds roles by each of their labels.
	rolesByLabel = cache.NewIndex("clusterRolesByLabel", func(object any) ([]string, error) {
		role, ok := object.(*rbacv1.ClusterRole)
		if !ok {
			return nil, nil
		}
		values := make([]string, 0, len(role.Labels))
		for key, value := range role.Labels {
			values = append(values, key+"="+value)
		}
		return values, nil
	})
	// aggregatedByLabel finds aggregated roles by one label that each of their
	// selectors requires.
	aggregatedByLabel = cache.NewIndex("aggregatedClusterRolesByLabel", func(object any) ([]string, error) {
		role, ok := object.(*rbacv1.ClusterRole)
		if !ok || role.AggregationRule == nil {
			return nil, nil
		}
		var values []string
		for i := range role.AggregationRule.ClusterRoleSelectors {
			selector, err := metav1.LabelSelectorAsSelector(&role.AggregationRule.ClusterRoleSelectors[i])
			if err != nil {
				continue // it selects nothing, and the role's own sync says so
			}
			values = append(values, required(selector))
		}
		return values, nil
	})
)

// required is a label without which a role is not selected, anyLabel if there is none.
func required(selector labels.Selector) string {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return anyLabel
	}
	for _, r := range requirements {
		if value, ok := selector.RequiresExactMatch(r.Key()); ok {
			return r.Key() + "=" + value
		}
	}
	return anyLabel
}

// selected returns the roles that a selector may match: all that do, and some
// that do not.
func selected(roles toolscache.Indexer, selector labels.Selector) ([]*rbacv1.ClusterRole, error) {
	if label := required(selector); label != anyLabel {
		return cache.Lookup[rbacv1.ClusterRole](roles, rolesByLabel, label)
	}
	var all []*rbacv1.ClusterRole
	for _, item := range roles.List() {
		if role, ok := item.(*rbacv1.ClusterRole); ok {
			all = append(all, role)
		}
	}
	return all, nil
}

// selecting returns the aggregated roles that may select one of these states of a role.
func selecting(roles toolscache.Indexer, states ...*rbacv1.ClusterRole) []*rbacv1.ClusterRole {
	values := map[string]bool{anyLabel: true}
	for _, state := range states {
		if state == nil {
			continue
		}
		for key, value := range state.Labels {
			values[key+"="+value] = true
		}
	}
	var found []*rbacv1.ClusterRole
	for value := range values {
		some, err := cache.Lookup[rbacv1.ClusterRole](roles, aggregatedByLabel, value)
		if err != nil {
			continue // the index is there from the start
		}
		found = append(found, some...)
	}
	return found
}
