package disruption

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	policyv1 "k8s.io/api/policy/v1"
)

func TestRequired(t *testing.T) {
	type answer struct{ expected, healthy int32 }
	for name, tc := range map[string]struct {
		budget *policyv1.PodDisruptionBudget
		pods   int
		scale  int32
		want   answer
	}{
		"a number that must stay is of the pods there are":       {budget(minAvailable("3")), 5, 9, answer{5, 3}},
		"a number that must stay may be more than there are":     {budget(minAvailable("7")), 5, 9, answer{5, 7}},
		"a share that must stay is of the scale, and rounded up": {budget(minAvailable("50%")), 5, 7, answer{7, 4}},
		"all must stay":                                            {budget(minAvailable("100%")), 5, 7, answer{7, 7}},
		"none must stay":                                           {budget(minAvailable("0%")), 5, 7, answer{7, 0}},
		"a number that may go is of the scale":                     {budget(maxUnavailable("2")), 5, 7, answer{7, 5}},
		"a share that may go is rounded up":                        {budget(maxUnavailable("30%")), 5, 7, answer{7, 4}},
		"more may go than there are":                               {budget(maxUnavailable("10")), 5, 7, answer{7, 0}},
		"none may go":                                              {budget(maxUnavailable("0")), 5, 7, answer{7, 7}},
		"a scale of nothing":                                       {budget(maxUnavailable("50%")), 0, 0, answer{0, 0}},
		"a budget that says nothing expects nothing":               {budget(), 5, 7, answer{0, 0}},
		"with both, written past the API, what may go is followed": {budget(minAvailable("1"), maxUnavailable("1")), 5, 7, answer{7, 6}},
	} {
		t.Run(name, func(t *testing.T) {
			expected, healthy, err := required(&tc.budget.Spec, tc.pods, expectation{count: tc.scale})
			if got := (answer{expected, healthy}); err != nil || got != tc.want {
				t.Errorf("got %v, %v; want %v", got, err, tc.want)
			}
		})
	}
}

func TestAShareThatIsNoneIsAnError(t *testing.T) {
	for _, b := range []*policyv1.PodDisruptionBudget{budget(minAvailable("half")), budget(maxUnavailable("half"))} {
		if _, _, err := required(&b.Spec, 5, expectation{count: 5}); err == nil {
			t.Error("no error")
		}
	}
}

func FuzzRequired(f *testing.F) {
	f.Add("50%", int32(7), 5, true)
	f.Add("-1%", int32(0), 0, false)
	f.Add("99999999999%", int32(math.MaxInt32), 1, true)
	f.Fuzz(func(t *testing.T, text string, scale int32, pods int, stay bool) {
		if scale < 0 || pods < 0 {
			return
		}
		b := budget(maxUnavailable(text))
		if stay {
			b = budget(minAvailable(text))
		}
		expected, healthy, err := required(&b.Spec, pods, expectation{count: scale})
		if err == nil && !stay && (expected < 0 || healthy < 0) {
			t.Errorf("%s of %d: %d, %d", text, scale, expected, healthy)
		}
		if got := allowed(expected, 3, healthy); got < 0 {
			t.Errorf("%d are allowed", got)
		}
	})
}

func TestByScale(t *testing.T) {
	for text, want := range map[string]bool{"1": false, "1%": true} {
		if got := byScale(&budget(minAvailable(text)).Spec); got != want {
			t.Errorf("minAvailable %s: %v", text, got)
		}
		if !byScale(&budget(maxUnavailable(text)).Spec) {
			t.Errorf("maxUnavailable %s", text)
		}
	}
	if byScale(&policyv1.PodDisruptionBudgetSpec{MinAvailable: &intstr.IntOrString{}}) {
		t.Error("zero is a number")
	}
}

func TestExpect(t *testing.T) {
	rs := func(name string) podOption { return of("apps/v1", "ReplicaSet", name) }
	known := map[string]*owner{
		"old": {"deployment", 5}, "new": {"deployment", 5}, "alone": {"alone", 3}, "gone": nil, "huge": {"huge", math.MaxInt32},
	}
	asked := 0
	ownerOf := func(ref *metav1.OwnerReference) (*owner, error) {
		asked++
		if ref.Name == "broken" {
			return nil, errors.New("no answer")
		}
		return known[ref.Name], nil
	}
	for name, tc := range map[string]struct {
		pods  []*corev1.Pod
		want  expectation
		asked int
		fails string
	}{
		"no pods":                                    {},
		"an owner is asked and counted once":         {[]*corev1.Pod{pod("a", rs("alone")), pod("b", rs("alone"))}, expectation{count: 3}, 1, ""},
		"two sets of one Deployment count as one":    {[]*corev1.Pod{pod("a", rs("old")), pod("b", rs("new"))}, expectation{count: 5}, 2, ""},
		"different owners are added up":              {[]*corev1.Pod{pod("a", rs("old")), pod("b", rs("alone"))}, expectation{count: 8}, 2, ""},
		"they add up to what a status can hold":      {[]*corev1.Pod{pod("a", rs("huge")), pod("b", rs("alone"))}, expectation{count: math.MaxInt32}, 2, ""},
		"pods of nobody are named, and others count": {[]*corev1.Pod{pod("a"), pod("b", rs("alone"))}, expectation{3, []string{"a"}}, 1, ""},
		"an owner that is gone leaves it unknown":    {[]*corev1.Pod{pod("b", rs("alone")), pod("a", rs("gone"))}, expectation{}, 2, `found no controllers for pod "a"`},
		"an owner that does not answer too":          {[]*corev1.Pod{pod("a", rs("broken"))}, expectation{}, 1, "no answer"},
	} {
		t.Run(name, func(t *testing.T) {
			asked = 0
			got, err := expect(tc.pods, ownerOf)
			if d := cmp.Diff(tc.want, got, cmp.AllowUnexported(expectation{})); d != "" || asked != tc.asked {
				t.Errorf("asked %d times\n%s", asked, d)
			}
			if (err == nil) != (tc.fails == "") || err != nil && err.Error() != tc.fails {
				t.Errorf("got error %v", err)
			}
		})
	}
}
