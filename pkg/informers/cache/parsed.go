package cache

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
)

// mostSelectors is how many parsed selectors are remembered; the ones that were
// not asked for the longest go first.
const mostSelectors = 4096

// Selectors remembers the selectors of objects that are reconciled again and
// again: to parse one, every key and value is matched against a regular
// expression. It is safe for concurrent use.
type Selectors struct{ parsed *lru.Cache }

type parsedSelector struct {
	generation int64
	selector   labels.Selector
}

// NewSelectors returns a memory that is empty.
func NewSelectors() *Selectors { return &Selectors{lru.New(mostSelectors)} }

// Of parses the selector in the spec of this object, as
// metav1.LabelSelectorAsSelector does, unless it has done so for this generation.
func (s *Selectors) Of(object metav1.Object, selector *metav1.LabelSelector) (labels.Selector, error) {
	uid, generation := object.GetUID(), object.GetGeneration()
	if known, ok := s.parsed.Get(uid); ok && known.(parsedSelector).generation == generation {
		return known.(parsedSelector).selector, nil
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err == nil && uid != types.UID("") {
		s.parsed.Add(uid, parsedSelector{generation, parsed})
	}
	return parsed, err
}
