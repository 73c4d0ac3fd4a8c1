package rejections

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Find returns the condition of an owner about its rejected pods; nil if there is none. of
// is that of Update.
func Find[C any](conditions []C, of func(*C) (conditionType string, since *metav1.Time)) *C {
	for i := range conditions {
		if named, _ := of(&conditions[i]); named == Condition {
			return &conditions[i]
		}
	}
	return nil
}

// Update brings an owner's conditions up to date. With a condition now, that one is
// set and keeps the time of transition of the one before; when it is over, the
// condition is removed; between two tries the conditions stay as they are. The conditions given are not changed. of takes the
// type and the time of transition from a condition of this owner's kind.
func Update[C any](conditions []C, now *C, over bool, of func(*C) (conditionType string, since *metav1.Time)) []C {
	at := slices.IndexFunc(conditions, func(c C) bool {
		named, _ := of(&c)
		return named == Condition
	})
	switch {
	case now != nil && at < 0:
		return append(slices.Clone(conditions), *now)
	case now != nil:
		conditions = slices.Clone(conditions)
		_, before := of(&conditions[at])
		updated := *now
		_, since := of(&updated)
		*since = *before
		conditions[at] = updated
	case at >= 0 && over:
		return slices.Delete(slices.Clone(conditions), at, at+1)
	}
	return conditions
}
