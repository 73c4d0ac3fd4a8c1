package cache

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
)

// Index is a named index of an informer. A controller asks for it with Ensure;
// the first to ask adds it.
type Index struct {
	name string
	of   toolscache.IndexFunc
}

// NewIndex declares an index beside the controllers that need it. The name is
// unique within a resource, and of must depend on nothing but the object.
func NewIndex(name string, of toolscache.IndexFunc) Index { return Index{name, of} }

var (
	// ByController finds objects by their namespace and the UID of their controlling owner;
	// see Controlled.
	ByController = Index{"controller", func(object any) ([]string, error) {
		if ref := controllerOf(object); ref != nil {
			return []string{inNamespace(object.(metav1.Object).GetNamespace(), ref.UID)}, nil
		}
		return nil, nil
	}}
	// Orphans finds the objects of a namespace that have no controlling owner.
	Orphans = Index{"orphansByNamespace", func(object any) ([]string, error) {
		if o, ok := object.(metav1.Object); ok && metav1.GetControllerOfNoCopy(o) == nil {
			return []string{o.GetNamespace()}, nil
		}
		return nil, nil
	}}
	// PodsByNode finds pods by spec.nodeName; those without one are under the empty name.
	PodsByNode = Index{"nodeName", func(object any) ([]string, error) {
		if pod, ok := object.(*corev1.Pod); ok {
			return []string{pod.Spec.NodeName}, nil
		}
		return nil, nil
	}}
	// ByLabel finds the objects of a namespace by each of their labels; see Selected.
	ByLabel = Index{"label", func(object any) ([]string, error) {
		o, ok := object.(metav1.Object)
		if !ok {
			return nil, nil
		}
		values := make([]string, 0, len(o.GetLabels()))
		for key, value := range o.GetLabels() {
			values = append(values, labelValue(o.GetNamespace(), key, value))
		}
		return values, nil
	}}
)

// Ensure adds the indexes to the informer that it does not have yet.
func Ensure(informer toolscache.SharedIndexInformer, indexes ...Index) error {
	for _, index := range indexes {
		if _, ok := informer.GetIndexer().GetIndexers()[index.name]; ok {
			continue
		}
		if err := informer.AddIndexers(toolscache.Indexers{index.name: index.of}); err != nil {
			return fmt.Errorf("add index %s: %w", index.name, err)
		}
	}
	return nil
}

// Lookup returns the objects that the index holds under value. They are shared
// and read-only. The index must have been ensured.
func Lookup[T any](indexer toolscache.Indexer, index Index, value string) ([]*T, error) {
	items, err := indexer.ByIndex(index.name, value)
	if err != nil {
		return nil, fmt.Errorf("look up %q in index %s: %w", value, index.name, err)
	}
	found := make([]*T, 0, len(items))
	for _, item := range items {
		if object, ok := item.(*T); ok {
			found = append(found, object)
		}
	}
	return found, nil
}

// Controlled returns the objects that owner controls, in the index ByController. An owner
// has nothing in other namespaces, whatever is said of it there.
func Controlled[T any](indexer toolscache.Indexer, namespace string, owner types.UID) ([]*T, error) {
	return Lookup[T](indexer, ByController, inNamespace(namespace, owner))
}

func inNamespace(namespace string, uid types.UID) string { return namespace + "/" + string(uid) }

// Owned returns the objects that owner controls and, for adoption, the orphans of its namespace.
func Owned[T any](indexer toolscache.Indexer, owner types.UID, namespace string) ([]*T, error) {
	owned, err := Controlled[T](indexer, namespace, owner)
	if err != nil {
		return nil, err
	}
	orphans, err := Lookup[T](indexer, Orphans, namespace)
	return append(owned, orphans...), err
}

// fewEnough objects cost less to look through than it costs to count those that
// carry a label all others carry too.
const fewEnough = 100

// Selected returns the objects of a namespace that carry all labels of a
// selector map, at the cost of those that carry its rarest one. An empty map
// selects nothing.
func Selected[T any](indexer toolscache.Indexer, namespace string, selector map[string]string) ([]*T, error) {
	var rarest string
	fewest := -1
	for _, key := range longestValueFirst(selector) {
		indexed := labelValue(namespace, key, selector[key])
		keys, err := indexer.IndexKeys(ByLabel.name, indexed)
		if err != nil {
			return nil, fmt.Errorf("look up %q in index %s: %w", indexed, ByLabel.name, err)
		}
		if fewest < 0 || len(keys) < fewest {
			rarest, fewest = indexed, len(keys)
		}
		if fewest <= fewEnough {
			break
		}
	}
	if fewest <= 0 {
		return nil, nil
	}
	candidates, err := Lookup[T](indexer, ByLabel, rarest)
	if err != nil || len(selector) == 1 {
		return candidates, err
	}
	return matching(candidates, labels.SelectorFromSet(selector)), nil
}

// matching takes those out of the candidates that do not match.
func matching[T any](candidates []*T, selector labels.Selector) []*T {
	return slices.DeleteFunc(candidates, func(candidate *T) bool {
		o, ok := any(candidate).(metav1.Object)
		return !ok || !selector.Matches(labels.Set(o.GetLabels()))
	})
}

// longestValueFirst orders the keys of a selector so that the label fewest carry
// is likely to come first: names of parts are longer than those of tiers.
func longestValueFirst(selector map[string]string) []string {
	return slices.SortedFunc(maps.Keys(selector), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(selector[b]), len(selector[a])), cmp.Compare(a, b))
	})
}

func labelValue(namespace, key, value string) string { return namespace + "/" + key + "=" + value }

func controllerOf(object any) *metav1.OwnerReference {
	if o, ok := object.(metav1.Object); ok {
		return metav1.GetControllerOfNoCopy(o)
	}
	return nil
}
