package cache

import (
	"cmp"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
	toolscache "k8s.io/client-go/tools/cache"
)

var (
	// OrphansByLabel finds the objects of a namespace that have no controlling
	// owner by each of their labels; see Adoptable.
	OrphansByLabel = Index{"orphansByLabel", func(object any) ([]string, error) {
		if controllerOf(object) != nil {
			return nil, nil
		}
		return ByLabel.of(object)
	}}
	// BySelector finds the objects of a namespace that may select a pod, by one
	// label that their selector requires; see MaySelect. The empty selector of a
	// workload selects nothing, that of a Job or a disruption budget everything.
	BySelector = Index{"requiredLabel", func(object any) ([]string, error) {
		o, ok := object.(metav1.Object)
		selector := selectorOf(object)
		_, budget := object.(*policyv1.PodDisruptionBudget)
		_, job := object.(*batchv1.Job)
		if !ok || selector == nil || selector.Empty() && !budget && !job {
			return nil, nil
		}
		required := RequiredLabels(selector)
		if len(required) == 0 {
			return []string{labelValue(o.GetNamespace(), "", "")}, nil
		}
		// Names of parts are longer than those of tiers, which many share.
		longest := slices.MaxFunc(required, func(a, b [2]string) int {
			return cmp.Or(cmp.Compare(len(a[1]), len(b[1])), cmp.Compare(a[0], b[0]))
		})
		return []string{labelValue(o.GetNamespace(), longest[0], longest[1])}, nil
	}}
)

// Adoptable returns the objects of a namespace that have no controlling owner
// and may match the selector, at the cost of those that carry the rarest label
// it requires. The indexes Orphans and OrphansByLabel must have been ensured.
func Adoptable[T any](indexer toolscache.Indexer, namespace string, selector labels.Selector) ([]*T, error) {
	index, rarest, fewest := Orphans, namespace, -1
	for _, label := range RequiredLabels(selector) {
		value := labelValue(namespace, label[0], label[1])
		keys, err := indexer.IndexKeys(OrphansByLabel.name, value)
		if err != nil {
			return nil, fmt.Errorf("look up %q in index %s: %w", value, OrphansByLabel.name, err)
		}
		if len(keys) == 0 {
			return nil, nil
		}
		if fewest < 0 || len(keys) < fewest {
			index, rarest, fewest = OrphansByLabel, value, len(keys)
		}
	}
	return Lookup[T](indexer, index, rarest)
}

// Matching returns the objects of a namespace that match the selector, at the
// cost of those that carry the rarest label it requires, or of all where it
// requires none. The index ByLabel must have been ensured; that of namespaces
// every shared informer has.
func Matching[T any](indexer toolscache.Indexer, namespace string, selector labels.Selector) ([]*T, error) {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return nil, nil
	}
	required := map[string]string{}
	for _, label := range RequiredLabels(selector) {
		required[label[0]] = label[1]
	}
	var candidates []*T
	var err error
	if len(required) > 0 {
		candidates, err = Selected[T](indexer, namespace, required)
	} else {
		candidates, err = Lookup[T](indexer, byNamespace, namespace)
	}
	if err != nil || len(requirements) == len(required) {
		return candidates, err
	}
	return matching(candidates, selector), nil
}

// byNamespace is the index that informers bring along.
var byNamespace = Index{name: toolscache.NamespaceIndex}

// MaySelect returns the objects whose selector may match the labels of a
// namespaced object: all that do, and some that do not. The index BySelector
// must have been ensured.
func MaySelect[T any](indexer toolscache.Indexer, selected metav1.Object) ([]*T, error) {
	found, err := Lookup[T](indexer, BySelector, labelValue(selected.GetNamespace(), "", ""))
	if err != nil {
		return nil, err
	}
	for key, value := range selected.GetLabels() {
		more, err := Lookup[T](indexer, BySelector, labelValue(selected.GetNamespace(), key, value))
		if err != nil {
			return nil, err
		}
		found = append(found, more...)
	}
	return found, nil
}

// Selecting returns the objects whose selector, as of reads it, matches the labels of a
// namespaced object. The index BySelector must have been ensured.
func Selecting[T any](indexer toolscache.Indexer, of func(*T) (labels.Selector, error), selected metav1.Object) ([]*T, error) {
	found, err := MaySelect[T](indexer, selected)
	return slices.DeleteFunc(found, func(object *T) bool {
		selector, err := of(object)
		return err != nil || !selector.Matches(labels.Set(selected.GetLabels()))
	}), err
}

// RequiredLabels are the labels without which nothing matches, by key.
func RequiredLabels(selector labels.Selector) [][2]string {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return nil
	}
	var required [][2]string
	for i := range requirements {
		r := &requirements[i]
		switch r.Operator() {
		case selection.In, selection.Equals, selection.DoubleEquals:
			if values := r.ValuesUnsorted(); len(values) == 1 {
				required = append(required, [2]string{r.Key(), values[0]})
			}
		}
	}
	slices.SortFunc(required, func(a, b [2]string) int { return slices.Compare(a[:], b[:]) })
	return required
}

// selectorOf is the selector of a workload; nil if it has none or a bad one.
func selectorOf(object any) labels.Selector {
	var selector *metav1.LabelSelector
	switch o := object.(type) {
	case *corev1.ReplicationController:
		if len(o.Spec.Selector) == 0 && o.Spec.Template != nil {
			return labels.SelectorFromSet(o.Spec.Template.Labels)
		}
		return labels.SelectorFromSet(o.Spec.Selector)
	case *appsv1.ReplicaSet:
		selector = o.Spec.Selector
	case *appsv1.DaemonSet:
		selector = o.Spec.Selector
	case *batchv1.Job:
		selector = o.Spec.Selector
	case *policyv1.PodDisruptionBudget:
		selector = o.Spec.Selector
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil || selector == nil {
		return nil
	}
	return parsed
}
