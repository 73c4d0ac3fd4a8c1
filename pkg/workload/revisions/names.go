package revisions

import (
	"fmt"
	"hash/fnv"
	"strconv"

	"k8s.io/apimachinery/pkg/util/rand"
)

const (
	// HashLabel is where the revisions of a StatefulSet carry their hash.
	HashLabel = "controller.kubernetes.io/hash"

	longestOwner = 223
)

// Hash names a revision by its data; collisions, when given, lead to another name.
func Hash(data []byte, collisions *int32) string {
	hasher := fnv.New32()
	hasher.Write(data)
	if collisions != nil {
		hasher.Write([]byte(strconv.Itoa(int(*collisions))))
	}
	return rand.SafeEncodeString(fmt.Sprint(hasher.Sum32()))
}

// Name is the name of a StatefulSet's revision; a long name of the owner gives way.
func Name(owner, hash string) string {
	return owner[:min(len(owner), longestOwner)] + "-" + hash
}
