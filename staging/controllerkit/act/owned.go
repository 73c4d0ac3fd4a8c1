package act

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Owned returns the objects that an owner has once a plan has adopted: those that it had
// before, and those that were adopted, as they are then.
func Owned[T client.Object](before []T, results Results) []T {
	owned := slices.Clone(before)
	for _, adopted := range Succeeded[Adopt](results) {
		if object, is := adopted.Object.(T); is {
			owned = append(owned, object)
		}
	}
	return owned
}
