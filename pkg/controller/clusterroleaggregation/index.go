package clusterroleaggregation

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
)

// anyLabel is the value under which aggregated roles are found that require no label.
const anyLabel = ""

// aggregatedByLabel finds aggregated roles by one label that each of their selectors requires.
var aggregatedByLabel = cache.NewIndex("aggregatedClusterRolesByLabel", func(object any) ([]string, error) {
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
		value := anyLabel
		if required := cache.RequiredLabels(selector); len(required) > 0 {
			value = required[0][0] + "=" + required[0][1]
		}
		values = append(values, value)
	}
	return values, nil
})

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
