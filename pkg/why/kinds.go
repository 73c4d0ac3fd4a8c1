package why

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kind is a kind as the API server serves it.
type Kind struct {
	schema.GroupKind
	// Resource is the plural.
	Resource   string
	Namespaced bool
	// names are all that users write for it, in lower case.
	names []string
}

// GroupResource is the resource that serves it.
func (k Kind) GroupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.Group, Resource: k.Resource}
}

// String is the kind as it is asked for: with its group where that is not built in.
func (k Kind) String() string {
	if k.Group == "" || strings.HasSuffix(k.Group, ".k8s.io") || !strings.Contains(k.Group, ".") {
		return k.Kind
	}
	return k.GroupKind.String()
}

// Kinds are those that can be asked for.
type Kinds struct {
	all    []Kind
	byName map[string][]int
	byKind map[schema.GroupKind]int
}

// KindsOf reads what discovery has answered. Of a kind that is served in several
// versions the first counts; subresources are left out.
func KindsOf(lists []*metav1.APIResourceList) *Kinds {
	k := &Kinds{byName: map[string][]int{}, byKind: map[schema.GroupKind]int{}}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			k.add(version.Group, &list.APIResources[i])
		}
	}
	return k
}

func (k *Kinds) add(group string, r *metav1.APIResource) {
	kind := Kind{GroupKind: schema.GroupKind{Group: group, Kind: r.Kind}, Resource: r.Name, Namespaced: r.Namespaced}
	if _, known := k.byKind[kind.GroupKind]; known || strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "get") {
		return
	}
	names := map[string]bool{r.Name: true, r.SingularName: true, strings.ToLower(r.Kind): true}
	for _, short := range r.ShortNames {
		names[short] = true
	}
	delete(names, "")
	kind.names = slices.Sorted(maps.Keys(names))
	k.put(kind)
}

func (k *Kinds) put(kind Kind) {
	at := len(k.all)
	k.all, k.byKind[kind.GroupKind] = append(k.all, kind), at
	for _, name := range kind.names {
		k.byName[name] = append(k.byName[name], at)
	}
}

// Keep adds the kinds of an earlier answer, for groups whose server does not answer now.
// It is called before anybody else has k.
func (k *Kinds) Keep(earlier *Kinds) {
	for _, kind := range earlier.all {
		if _, known := k.byKind[kind.GroupKind]; !known {
			k.put(kind)
		}
	}
}

// Find returns the kind that a user means with a word: the kind, its singular, plural or
// a short name, in upper or lower case, with ".group" or ".version.group" behind it or
// without. Of several, one that this package has a verdict for comes first.
func (k *Kinds) Find(word string) (Kind, bool) {
	word, group, grouped := strings.Cut(strings.ToLower(word), ".")
	var found []Kind
	for _, at := range k.byName[word] {
		if kind := k.all[at]; !grouped || kind.Group == group || strings.HasSuffix(group, "."+kind.Group) && kind.Group != "" {
			found = append(found, kind)
		}
	}
	if len(found) == 0 {
		return Kind{}, false
	}
	return slices.MinFunc(found, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(judged(a), judged(b)), cmp.Compare(a.Group, b.Group))
	}), true
}

// judged is 0 for a kind that has a verdict of its own, and 1 for others.
func judged(k Kind) int {
	if _, ok := rows[k.GroupKind]; ok {
		return 0
	}
	return 1
}

// of returns the kind with this name, as it is served.
func (k *Kinds) of(gk schema.GroupKind) (Kind, bool) {
	at, ok := k.byKind[gk]
	if !ok {
		return Kind{}, false
	}
	return k.all[at], true
}

// Names lists the kinds with a verdict of their own first, then all others.
func (k *Kinds) Names() []string {
	all := slices.Clone(k.all)
	slices.SortFunc(all, func(a, b Kind) int {
		return cmp.Or(cmp.Compare(judged(a), judged(b)), cmp.Compare(a.String(), b.String()))
	})
	names := make([]string, 0, len(all))
	for _, kind := range all {
		names = append(names, kind.String())
	}
	return slices.Compact(names)
}
