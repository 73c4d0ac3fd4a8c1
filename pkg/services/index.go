package services

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
)

// BySelector finds Services by one label pair of their selector. A pod that a
// Service selects carries that pair, so looking up each label of the pod finds
// all its Services.
var BySelector = cache.NewIndex("selector", func(object any) ([]string, error) {
	service, ok := object.(*corev1.Service)
	if !ok || !Selects(service) {
		return nil, nil
	}
	key, value := rarePair(service.Spec.Selector)
	return []string{pairValue(service.Namespace, key, value)}, nil
})

// Selecting returns the Services of a namespace whose selector matches the
// labels of a pod. They are shared and read-only. BySelector must have been ensured.
func Selecting(services toolscache.Indexer, namespace string, podLabels map[string]string) ([]*corev1.Service, error) {
	var found []*corev1.Service
	for key, value := range podLabels {
		candidates, err := cache.Lookup[corev1.Service](services, BySelector, pairValue(namespace, key, value))
		if err != nil {
			return nil, fmt.Errorf("find services of a pod: %w", err)
		}
		for _, service := range candidates {
			if matches(service.Spec.Selector, podLabels) {
				found = append(found, service)
			}
		}
	}
	return found, nil
}

func matches(selector, podLabels map[string]string) bool {
	for key, want := range selector {
		if got, ok := podLabels[key]; !ok || got != want {
			return false
		}
	}
	return true
}

// Selects reports whether the Service takes its endpoints from pods at all. No
// selector selects nothing, and an external name has no endpoints.
func Selects(service *corev1.Service) bool {
	return len(service.Spec.Selector) > 0 && service.Spec.Type != corev1.ServiceTypeExternalName
}

// rarePair picks the pair of a selector that fewest Services are likely to
// share: the longest value, because names of parts are longer than those of
// tiers and environments; then the first key, so that the choice is stable.
func rarePair(selector map[string]string) (key, value string) {
	for k, v := range selector {
		if key == "" || len(v) > len(value) || len(v) == len(value) && k < key {
			key, value = k, v
		}
	}
	return key, value
}

func pairValue(namespace, key, value string) string { return namespace + "/" + key + "=" + value }
