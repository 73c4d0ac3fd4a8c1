package rejections

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Find returns the condition of an owner about its rejected pods; nil if there is none. of
// is that of Tell.
func Find[C any](conditions []C, of func(*C) (conditionType string, since *metav1.Time)) *C {
	for i := range conditions {
		if named, _ := of(&conditions[i]); named == Condition {
			return &conditions[i]
		}
	}
	return nil
}

// Tell brings an owner's conditions up to date: with what is to be told now, which
// keeps the time of transition of what was told before; without it when it is over;
// as they are between two tries. The conditions given are not changed. of takes the
// type and the time of transition from a condition of this owner's kind.
func Tell[C any](conditions []C, now *C, over bool, of func(*C) (conditionType string, since *metav1.Time)) []C {
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
		told := *now
		_, since := of(&told)
		*since = *before
		conditions[at] = told
	case at >= 0 && over:
		return slices.Delete(slices.Clone(conditions), at, at+1)
	}
	return conditions
}
