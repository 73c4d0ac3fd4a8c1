package pods

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/dump"
)

// TemplateHash names a pod template; collisions, when given, lead to another
// name. It is part of the names of ReplicaSets and revisions and of the labels of
// pods, in clusters that have run for years: it never changes.
func TemplateHash(template *corev1.PodTemplateSpec, collisions *int32) string {
	hasher := fnv.New32a()
	fmt.Fprint(hasher, dump.ForHash(*template))
	if collisions != nil {
		var count [8]byte
		binary.LittleEndian.PutUint32(count[:], uint32(*collisions))
		hasher.Write(count[:])
	}
	return rand.SafeEncodeString(fmt.Sprint(hasher.Sum32()))
}
