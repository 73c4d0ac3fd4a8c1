package deployment

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"
)

// setName is the name of the ReplicaSet for a template; a long Deployment name
// gives way to the hash.
func setName(deployment, hash string) string {
	room := validation.DNS1123SubdomainMaxLength - len(hash) - 1
	return deployment[:min(len(deployment), room)] + "-" + hash
}

func withoutHash(labels map[string]string) map[string]string {
	if _, ok := labels[appsv1.DefaultDeploymentUniqueLabelKey]; !ok {
		return labels
	}
	rest := maps.Clone(labels)
	delete(rest, appsv1.DefaultDeploymentUniqueLabelKey)
	return rest
}

func withHash(of map[string]string, hash string) map[string]string {
	return labels.Merge(of, labels.Set{appsv1.DefaultDeploymentUniqueLabelKey: hash})
}
