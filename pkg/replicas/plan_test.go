package replicas

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"
)

func leaving(s *Set) *Set {
	s.Object.SetDeletionTimestamp(ptr.To(ago(0)))
	return s
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		o    Observed
		want explanation
	}{
		"an empty set gets all its pods":                   {Observed{Set: set(3)}, explanation{Create: 3, Why: "3 short of 3"}},
		"missing pods are made":                            {Observed{Set: set(3), Active: many(1)}, explanation{Create: 2, Why: "2 short of 3"}},
		"a pod on its way out is not waited for":           {Observed{Set: set(1), Terminating: many(1)}, explanation{Create: 1, Why: "1 short of 1"}},
		"no more than a burst is made at once":             {Observed{Set: set(1200)}, explanation{Create: 500, Why: "1200 short of 1200"}},
		"enough is enough":                                 {Observed{Set: set(2), Active: many(2)}, explanation{Why: "2 as wanted"}},
		"pods over the number go":                          {Observed{Set: set(1), Active: many(2)}, explanation{Delete: 1, First: []string{"aaa"}, Why: "1 more than 1"}},
		"all pods of an empty set go":                      {Observed{Set: set(0), Active: many(2)}, explanation{Delete: 2, First: []string{"aaa", "aab"}, Why: "2 more than 0"}},
		"a set that is being deleted leaves its pods":      {Observed{Set: leaving(set(0)), Active: many(2)}, explanation{Why: "being deleted: its pods belong to the garbage collector"}},
		"a set that is being deleted makes no pods":        {Observed{Set: leaving(set(2))}, explanation{Why: "being deleted: its pods belong to the garbage collector"}},
		"a negative number, written past the API, is none": {Observed{Set: set(-1), Active: many(1)}, explanation{Delete: 1, First: []string{"aaa"}, Why: "2 more than -1"}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, decide(tc.o, true, noon).explain()); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestNoMoreThanABurstIsDeletedAtOnce(t *testing.T) {
	if got := len(decide(Observed{Set: set(0), Active: many(501)}, true, noon).Delete); got != 500 {
		t.Errorf("got %d", got)
	}
}

func TestNextLook(t *testing.T) {
	patient := set(3)
	patient.MinReadySeconds = 30
	for name, tc := range map[string]struct {
		o    Observed
		want time.Duration
	}{
		"nothing to wait for without a minimum": {Observed{Set: set(1), Active: many(1)}, 0},
		"available pods need no look":           {Observed{Set: patient, Active: many(1)}, 0},
		"an unready pod needs no look":          {Observed{Set: patient, Active: []*corev1.Pod{pod("a", unready)}}, 0},
		"the next pod to become available is awaited, to the second": {Observed{Set: patient, Active: []*corev1.Pod{
			pod("a", ready(ago(5*time.Second))), pod("b", ready(ago(20*time.Second))), pod("c")}}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := nextLook(tc.o, noon); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestCheck(t *testing.T) {
	blank, foreign, everything := set(1), set(1), set(1)
	blank.Template = nil
	foreign.Selector = labels.SelectorFromSet(labels.Set{"app": "other"})
	everything.Selector = labels.Everything()
	for name, tc := range map[string]struct {
		set *Set
		ok  bool
	}{
		"a sound set passes":   {set(1), true},
		"no template, no pods": {blank, false},
		"pods that the selector misses would be made forever": {foreign, false},
		"an empty selector claims nothing":                    {everything, false},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.set.Check(); (err == nil) != tc.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}
