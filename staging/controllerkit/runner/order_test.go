package runner

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestNamespacesTakeTurns(t *testing.T) {
	for name, tc := range map[string]struct{ in, out string }{
		"nothing":                        {"", ""},
		"one namespace is in order":      {"a/1 a/2 a/3", "a/1 a/2 a/3"},
		"a bystander is next but one":    {"a/1 a/2 a/3 a/4 b/1", "a/1 b/1 a/2 a/3 a/4"},
		"three take turns":               {"a/1 a/2 b/1 b/2 c/1 c/2", "a/1 b/1 c/1 a/2 b/2 c/2"},
		"who comes back has to queue up": {"a/1 a/2 b/1 - - a/3 b/2", "a/1 b/1 | a/2 b/2 a/3"},
	} {
		t.Run(name, func(t *testing.T) {
			q := Fair(byNamespace[types.NamespacedName])
			var out []string
			pop := func() { key := q.Pop(); out = append(out, key.String()) }
			want := len(strings.Fields(strings.ReplaceAll(tc.in, "-", "")))
			for _, key := range strings.Fields(tc.in) {
				if key == "-" {
					pop()
					continue
				}
				namespace, name, _ := strings.Cut(key, "/")
				q.Push(types.NamespacedName{Namespace: namespace, Name: name})
			}
			if q.Len() != want-len(out) {
				t.Errorf("%d wait", q.Len())
			}
			for q.Len() > 0 {
				pop()
			}
			if !slices.Equal(out, strings.Fields(strings.ReplaceAll(tc.out, "|", ""))) {
				t.Errorf("got %v", out)
			}
		})
	}
}

func TestAnEmptyNamespaceCostsNothing(t *testing.T) {
	q := Fair(byNamespace[types.NamespacedName]).(*fair[types.NamespacedName])
	for i := range 1000 {
		q.Push(types.NamespacedName{Namespace: strings.Repeat("x", i)})
		q.Pop()
	}
	if len(q.waiting) != 0 || q.turns.Len() != 0 {
		t.Errorf("still knows %d namespaces and %d turns", len(q.waiting), q.turns.Len())
	}
}

func TestOtherKeysAreInOrder(t *testing.T) {
	q := Fair(byNamespace[string])
	for _, key := range []string{"b", "a", "c"} {
		q.Push(key)
	}
	if got := q.Pop() + q.Pop() + q.Pop(); got != "bac" {
		t.Errorf("got %s", got)
	}
}
