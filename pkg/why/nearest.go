package why

import (
	"cmp"
	"slices"
	"strings"

	toolscache "k8s.io/client-go/tools/cache"
)

// near is how many other objects are named when the one asked for is not known.
const near = 8

// missing is what was asked for, when no cache holds it, with what the cache of its kind holds.
func (l *look) missing(kind Kind, r relative) item {
	i := l.absent(r, nil, 0)
	for _, cache := range l.Caches(kind) {
		if cache.Part || !cache.Synced {
			continue
		}
		keys, ok := keysIn(cache.Indexer, r.namespace)
		if !ok {
			continue
		}
		fact := "the cache has " + plural(len(keys), "object") + " of its kind"
		if r.namespace != "" {
			fact += " in namespace " + r.namespace
		}
		i.Facts = append(i.Facts, fact)
		l.nearest = nearest(kind, r.name, keys)
		break
	}
	return i
}

// keysIn returns the keys of a namespace, or of all objects of a kind that is in none. A
// cache without an index of namespaces cannot say.
func keysIn(in toolscache.Indexer, namespace string) ([]string, bool) {
	if namespace == "" {
		return in.ListKeys(), true
	}
	keys, err := in.IndexKeys(toolscache.NamespaceIndex, namespace)
	return keys, err == nil
}

// nearest are the objects with the most similar names.
func nearest(kind Kind, name string, keys []string) []Asked {
	keys = keys[:min(len(keys), judgedAtMost)]
	all := make([]Asked, 0, len(keys))
	for _, key := range keys {
		namespace, other, err := toolscache.SplitMetaNamespaceKey(key)
		if err == nil {
			all = append(all, Asked{Kind: kind.String(), Namespace: namespace, Name: other})
		}
	}
	slices.SortFunc(all, func(a, b Asked) int {
		return cmp.Or(cmp.Compare(alike(b.Name, name), alike(a.Name, name)), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), near)]
}

// alike is greater the more two names have in common: what they begin with, or that one is in the other.
func alike(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	if strings.Contains(a, b) || strings.Contains(b, a) {
		n = max(n, min(len(a), len(b)))
	}
	return n
}
