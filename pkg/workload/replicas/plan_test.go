package replicas

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

func leaving(s *Set) *Set {
	s.Object.SetDeletionTimestamp(ptr.To(ago(0)))
	return s
}

// have are pods of the set that match its selector.
func have(pods []*corev1.Pod) ownership.Claims[*corev1.Pod] {
	return ownership.Claims[*corev1.Pod]{Owned: pods}
}

// shown is a plan in a line: why, and how many pods are made or which go.
func shown(p act.Plan) string {
	var made int
	var gone []string
	for _, stage := range p.Stages {
		for _, step := range stage.Steps {
			switch step := step.(type) {
			case act.Create:
				made++
			case act.Delete:
				gone = append(gone, step.Of.GetName())
			}
		}
	}
	line := p.Why
	if made > 0 {
		line += fmt.Sprintf("; create %d", made)
	}
	if len(gone) > 0 {
		line += "; delete " + strings.Join(gone, " ")
	}
	return line
}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		o    Observed
		want string
	}{
		"an empty set gets all its pods":                   {Observed{Form: testKind{}, Set: set(3)}, "3 pods missing of 3; create 3"},
		"missing pods are made":                            {Observed{Form: testKind{}, Set: set(3), Claims: have(many(1))}, "2 pods missing of 3; create 2"},
		"a pod on its way out is not waited for":           {Observed{Form: testKind{}, Set: set(1), Terminating: many(1)}, "1 pods missing of 1; create 1"},
		"no more than a burst is made at once":             {Observed{Form: testKind{}, Set: set(1200)}, "1200 pods missing of 1200; create 500"},
		"enough is enough":                                 {Observed{Form: testKind{}, Set: set(2), Claims: have(many(2))}, "2 pods, as wanted"},
		"pods over the number go":                          {Observed{Form: testKind{}, Set: set(1), Claims: have(many(2))}, "1 pods more than 1; delete aaa"},
		"all pods of an empty set go":                      {Observed{Form: testKind{}, Set: set(0), Claims: have(many(2))}, "2 pods more than 0; delete aaa aab"},
		"a set that is being deleted leaves its pods":      {Observed{Form: testKind{}, Set: leaving(set(0)), Claims: have(many(2))}, "being deleted: its pods belong to the garbage collector"},
		"a set that is being deleted makes no pods":        {Observed{Form: testKind{}, Set: leaving(set(2))}, "being deleted: its pods belong to the garbage collector"},
		"a negative number, written past the API, is none": {Observed{Form: testKind{}, Set: set(-1), Claims: have(many(1))}, "2 pods more than -1; delete aaa"},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(tc.o, noon)
			if d := cmp.Diff(tc.want, shown(p)); d != "" {
				t.Error(d)
			}
			if deletes := strings.Contains(tc.want, "; delete"); (p.Counts != nil) != deletes {
				t.Errorf("ages are counted: %v", !deletes)
			}
		})
	}
}

func TestNoMoreThanABurstIsDeletedAtOnce(t *testing.T) {
	if got := len(plan(Observed{Form: testKind{}, Set: set(0), Claims: have(many(501))}, noon).Stages[0].Steps); got != 500 {
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
		"nothing to wait for without a minimum": {Observed{Form: testKind{}, Set: set(1), Claims: have(many(1))}, 0},
		"available pods need no look":           {Observed{Form: testKind{}, Set: patient, Claims: have(many(1))}, 0},
		"an unready pod needs no look":          {Observed{Form: testKind{}, Set: patient, Claims: have([]*corev1.Pod{pod("a", unready)})}, 0},
		"the next pod to become available is awaited, to the second": {Observed{Form: testKind{}, Set: patient, Claims: have([]*corev1.Pod{
			pod("a", ready(ago(5*time.Second))), pod("b", ready(ago(20*time.Second))), pod("c")})}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := plan(tc.o, noon).RequeueAfter; got != tc.want {
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
