package clusterroleaggregation

import (
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

type change func(*rbacv1.ClusterRole)

func role(name string, changes ...change) *rbacv1.ClusterRole {
	r := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid"}}
	for _, change := range changes {
		change(r)
	}
	return r
}

func rule(resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{resource}}
}

func rules(resources ...string) []rbacv1.PolicyRule {
	var all []rbacv1.PolicyRule
	for _, resource := range resources {
		all = append(all, rule(resource))
	}
	return all
}

func allows(resources ...string) change {
	return func(r *rbacv1.ClusterRole) { r.Rules = rules(resources...) }
}

func labelled(key, value string) change {
	return func(r *rbacv1.ClusterRole) { metav1.SetMetaDataLabel(&r.ObjectMeta, key, value) }
}

func aggregates(selectors ...metav1.LabelSelector) change {
	return func(r *rbacv1.ClusterRole) {
		r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: selectors}
	}
}

func to(value string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchLabels: map[string]string{"to": value}}
}

func operator(operator metav1.LabelSelectorOperator, values ...string) metav1.LabelSelector {
	return metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "to", Operator: operator, Values: values}}}
}

func cached(t *testing.T, roles ...*rbacv1.ClusterRole) toolscache.Indexer {
	t.Helper()
	informer := informers.NewSharedInformerFactory(fake.NewClientset(), 0).Rbac().V1().ClusterRoles().Informer()
	if err := cache.Ensure(informer, cache.ByLabel, aggregatedByLabel); err != nil {
		t.Fatal(err)
	}
	for _, r := range roles {
		if err := informer.GetIndexer().Add(r); err != nil {
			t.Fatal(err)
		}
	}
	return informer.GetIndexer()
}

// wants is what a plan is to say: the rules to apply, and how many of how many roles.
type wants struct {
	apply []rbacv1.PolicyRule
	why   string
}

func TestPlan(t *testing.T) {
	right := func(rules, from int) string { return fmt.Sprintf("it has the %d rules of %d roles", rules, from) }
	wrong := func(rules, from int) string {
		return fmt.Sprintf("its rules differ from the %d rules of %d roles", rules, from)
	}
	for name, tc := range map[string]struct {
		role   *rbacv1.ClusterRole
		others []*rbacv1.ClusterRole
		want   wants
	}{
		"the rules of all selected roles, by name": {
			role("sum", aggregates(to("sum"))),
			[]*rbacv1.ClusterRole{role("b", labelled("to", "sum"), allows("pods")), role("a", labelled("to", "sum"), allows("nodes"))},
			wants{apply: rules("nodes", "pods"), why: wrong(2, 2)}},
		"the order of selectors comes before that of names": {
			role("sum", aggregates(to("two"), to("one"))),
			[]*rbacv1.ClusterRole{role("a", labelled("to", "one"), allows("pods")), role("b", labelled("to", "two"), allows("nodes"))},
			wants{apply: rules("nodes", "pods"), why: wrong(2, 2)}},
		"a rule that several have is taken once": {
			role("sum", aggregates(to("sum"))),
			[]*rbacv1.ClusterRole{role("a", labelled("to", "sum"), allows("pods", "nodes", "pods")), role("b", labelled("to", "sum"), allows("nodes"))},
			wants{apply: rules("pods", "nodes"), why: wrong(2, 2)}},
		"right rules are left alone": {
			role("sum", aggregates(to("sum")), allows("pods")),
			[]*rbacv1.ClusterRole{role("a", labelled("to", "sum"), allows("pods"))},
			wants{why: right(1, 1)}},
		"right rules in another order are not right": {
			role("sum", aggregates(to("sum")), allows("nodes", "pods")),
			[]*rbacv1.ClusterRole{role("a", labelled("to", "sum"), allows("pods", "nodes"))},
			wants{apply: rules("pods", "nodes"), why: wrong(2, 1)}},
		"rules that somebody added go": {
			role("sum", aggregates(to("sum")), allows("pods", "secrets")),
			[]*rbacv1.ClusterRole{role("a", labelled("to", "sum"), allows("pods"))},
			wants{apply: rules("pods"), why: wrong(1, 1)}},
		"a role does not select itself": {
			role("sum", aggregates(to("sum")), labelled("to", "sum"), allows("pods")),
			[]*rbacv1.ClusterRole{role("a", labelled("to", "sum"), allows("nodes"))},
			wants{apply: rules("nodes"), why: wrong(1, 1)}},
		"an aggregated role is selected like any other": {
			role("sum", aggregates(to("sum"))),
			[]*rbacv1.ClusterRole{role("a", labelled("to", "sum"), aggregates(to("a")), allows("pods"))},
			wants{apply: rules("pods"), why: wrong(1, 1)}},
		"a role that selects it in turn adds what that selects, and nothing that only the two have": {
			role("sum", aggregates(to("sum")), labelled("to", "back"), allows("pods")),
			[]*rbacv1.ClusterRole{role("back", labelled("to", "sum"), aggregates(to("back")), allows("pods", "nodes")), role("leaf", labelled("to", "back"), allows("nodes"))},
			wants{apply: rules("nodes"), why: wrong(1, 1)}},
		"so does one that selects it through others": {
			role("sum", aggregates(to("sum")), labelled("to", "c")),
			[]*rbacv1.ClusterRole{role("b", labelled("to", "sum"), aggregates(to("b")), allows("pods")), role("c", labelled("to", "b"), aggregates(to("c")), allows("pods")),
				role("leaf", labelled("to", "c"), allows("nodes"))},
			wants{apply: rules("nodes"), why: wrong(1, 1)}},
		"when the last selected role is gone, no rule stays": {
			role("sum", aggregates(to("sum")), allows("pods")), nil,
			wants{apply: []rbacv1.PolicyRule{}, why: wrong(0, 0)}},
		"no rules and none to have": {
			role("sum", aggregates(to("sum"))), nil, wants{why: right(0, 0)}},
		"a selected role without rules adds none": {
			role("sum", aggregates(to("sum"))), []*rbacv1.ClusterRole{role("a", labelled("to", "sum"))}, wants{why: right(0, 1)}},
		"an empty selector selects all others": {
			role("sum", aggregates(metav1.LabelSelector{})), []*rbacv1.ClusterRole{role("a", allows("pods"))},
			wants{apply: rules("pods"), why: wrong(1, 1)}},
		"expressions select too": {
			role("sum", aggregates(operator(metav1.LabelSelectorOpIn, "x", "y"))),
			[]*rbacv1.ClusterRole{role("a", labelled("to", "y"), allows("pods")), role("b", labelled("to", "z"), allows("nodes"))},
			wants{apply: rules("pods"), why: wrong(1, 1)}},
		"a role without an aggregation rule is its owner's": {
			role("plain", allows("pods")), []*rbacv1.ClusterRole{role("a", allows("nodes"))}, wants{why: "the role is not aggregated"}},
	} {
		t.Run(name, func(t *testing.T) {
			store := cached(t, append(tc.others, tc.role)...)
			before := tc.role.DeepCopy()
			o, err := (&Controller{roles: store}).observe(t.Context(), tc.role.Name)
			if err != nil {
				t.Fatal(err)
			}
			p := plan(o, time.Time{})
			if diff := cmp.Diff(tc.want, wants{applied(t, p), p.Why}, cmp.AllowUnexported(wants{})); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, tc.role); diff != "" {
				t.Errorf("the cached object was changed: %s", diff)
			}
		})
	}
}

// Roles that select each other may be planned from one state, as each has its turn when the caches
// do not show yet what was written for the other. A rule that one of them alone has goes.
func TestRolesThatSelectEachOtherComeToRest(t *testing.T) {
	for name, around := range map[string]int{"two": 2, "three": 3} {
		t.Run(name, func(t *testing.T) {
			var all []*rbacv1.ClusterRole
			for i := range around {
				before, byHand := fmt.Sprint((i+around-1)%around), allows()
				if i == 0 {
					byHand = allows("own")
				}
				all = append(all, role(fmt.Sprint(i), labelled("to", before), aggregates(to(fmt.Sprint(i))), byHand), role("leaf-"+fmt.Sprint(i), labelled("to", fmt.Sprint(i)), allows("r"+fmt.Sprint(i))))
			}
			store := cached(t, all...)
			for range 2 * around {
				var next []*rbacv1.ClusterRole
				for i := range around {
					o, err := (&Controller{roles: store}).observe(t.Context(), fmt.Sprint(i))
					if err != nil {
						t.Fatal(err)
					}
					if rules := applied(t, plan(o, time.Time{})); rules != nil {
						if contains(rules, rule("own")) {
							t.Errorf("%d has a rule that no other role has", i)
						}
						written := o.role.DeepCopy()
						written.Rules = rules
						next = append(next, written)
					}
				}
				if len(next) == 0 {
					return
				}
				for _, r := range next {
					if err := store.Update(r); err != nil {
						t.Fatal(err)
					}
				}
			}
			t.Error("they are still written")
		})
	}
}

// applied are the rules that a plan applies by force, with the UID of the role.
func applied(t *testing.T, p act.Plan) []rbacv1.PolicyRule {
	t.Helper()
	if len(p.Stages) == 0 {
		return nil
	}
	step := p.Stages[0].Steps[0].(act.Apply)
	data, err := json.Marshal(step.Configuration)
	if err != nil {
		t.Fatal(err)
	}
	var role rbacv1.ClusterRole
	if err := json.Unmarshal(data, &role); err != nil {
		t.Fatal(err)
	}
	if !step.Force || step.Manager != name || role.UID != step.Of.GetUID() || role.Name != step.Of.GetName() {
		t.Errorf("applies %s", data)
	}
	return append([]rbacv1.PolicyRule{}, role.Rules...)
}

func TestAnInvalidSelectorIsNamed(t *testing.T) {
	_, err := sources(role("sum", aggregates(operator("Foo"))), func(labels.Selector) ([]*rbacv1.ClusterRole, error) { return nil, nil })
	if invalid := (*errSelector)(nil); !errors.As(err, &invalid) || invalid.role != "sum" {
		t.Errorf("got %v", err)
	}
}

func TestConcerns(t *testing.T) {
	before := role("a", labelled("to", "sum"), allows("pods"))
	for name, tc := range map[string]struct {
		before, after *rbacv1.ClusterRole
		want          bool
	}{
		"a new role":                      {nil, before, true},
		"a role that went":                {before, nil, true},
		"other rules":                     {before, role("a", labelled("to", "sum"), allows("nodes")), true},
		"other labels":                    {before, role("a", allows("pods")), true},
		"another role of that name":       {before, role("a", labelled("to", "sum"), allows("pods"), func(r *rbacv1.ClusterRole) { r.UID = "new" }), true},
		"an annotation changes no rules":  {before, role("a", labelled("to", "sum"), allows("pods"), func(r *rbacv1.ClusterRole) { r.Annotations = map[string]string{"x": "y"} }), false},
		"the same again, from a new list": {before, before.DeepCopy(), false},
	} {
		if got := concerns(tc.before, tc.after); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestSelectingFindsWhoeverMaySelect(t *testing.T) {
	store := cached(t,
		role("exact", aggregates(to("sum"))), role("other", aggregates(to("other"))),
		role("any", aggregates(metav1.LabelSelector{})), role("exists", aggregates(operator(metav1.LabelSelectorOpExists))),
		role("one", aggregates(operator(metav1.LabelSelectorOpIn, "sum"))), role("second", aggregates(to("other"), to("sum"))),
		role("broken", aggregates(operator("Foo"))), role("plain", labelled("to", "sum")))
	for name, tc := range map[string]struct {
		states []*rbacv1.ClusterRole
		want   []string
	}{
		"by the label that it has":             {[]*rbacv1.ClusterRole{role("a", labelled("to", "sum"))}, []string{"exact", "any", "exists", "one", "second"}},
		"by the label that it had":             {[]*rbacv1.ClusterRole{role("a", labelled("to", "sum")), role("a")}, []string{"exact", "any", "exists", "one", "second"}},
		"without labels by what requires none": {[]*rbacv1.ClusterRole{nil, role("a")}, []string{"any", "exists"}},
	} {
		got := map[string]bool{}
		for _, r := range selecting(store, tc.states...) {
			got[r.Name] = true
		}
		want := map[string]bool{}
		for _, n := range tc.want {
			want[n] = true
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
