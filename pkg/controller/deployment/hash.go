package deployment

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/dump"
)

// hashOf names a pod template. It is part of the names of ReplicaSets and of the
// labels of pods, in clusters that have run for years: it never changes.
func hashOf(template *corev1.PodTemplateSpec, collisions *int32) string {
	hasher := fnv.New32a()
	fmt.Fprint(hasher, dump.ForHash(*template))
	if collisions != nil {
		var count [8]byte
		binary.LittleEndian.PutUint32(count[:], uint32(*collisions))
		hasher.Write(count[:])
	}
	return rand.SafeEncodeString(fmt.Sprint(hasher.Sum32()))
}

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

func withHash(labels map[string]string, hash string) map[string]string {
	all := make(map[string]string, len(labels)+1)
	maps.Copy(all, labels)
	all[appsv1.DefaultDeploymentUniqueLabelKey] = hash
	return all
}
