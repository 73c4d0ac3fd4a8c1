package compare

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequestsAreHeldAgainstTheRole(t *testing.T) {
	roles := Roles{
		"deployment-controller": {
			{Verbs: []string{"update", "get"}, APIGroups: []string{"apps"}, Resources: []string{"deployments", "deployments/status"}},
			{Verbs: []string{"*"}, APIGroups: []string{""}, Resources: []string{"events"}},
		},
		"other":   {{Verbs: []string{"patch"}, APIGroups: []string{"*"}, Resources: []string{"*/scale"}}},
		"metrics": {{Verbs: []string{"get"}, APIGroups: []string{"custom.metrics.k8s.io"}, Resources: []string{"*"}}},
	}
	for _, c := range []struct {
		who, verb, resource string
		want                bool
	}{
		{"deployment-controller", "update", "deployments.apps", true},
		{"deployment-controller", "update", "deployments.apps/status", true},
		{"deployment-controller", "patch", "deployments.apps", false},
		{"deployment-controller", "update", "deployments.extensions", false},
		{"deployment-controller", "update", "deployments", false},
		{"deployment-controller", "update", "deployments.apps/scale", false},
		{"deployment-controller", "delete", "events", true},
		{"other", "patch", "widgets.example.com/scale", true},
		{"other", "patch", "widgets.example.com", false},
		{"nobody", "get", "pods", false},
		{"metrics", "get", "services.custom.metrics.k8s.io/hits", true},
		{"metrics", "get", "deployments.apps.custom.metrics.k8s.io/hits", true},
		{"metrics", "get", "deployments.apps", false},
		{"metrics", "get", "queue.external.metrics.k8s.io", false},
		{"metrics", "get", "pods", false},
	} {
		if got := roles.allow(c.who, c.verb, c.resource); got != c.want {
			t.Errorf("%s %s %s: %v", c.who, c.verb, c.resource, got)
		}
	}
}

func TestARequestOutsideOfTheRoleIsAFinding(t *testing.T) {
	roles := Roles{"a": {{Verbs: []string{"get", "list"}, APIGroups: []string{"apps"}, Resources: []string{"sets", "sets/status"}}}}
	used := func(who string, requests ...string) *Record {
		r := &Record{Used: map[string]map[string]int{who: {}}}
		for _, request := range requests {
			r.Used[who][request]++
		}
		return r
	}
	uses, others := roles.Uses([]Result{
		{Reference: used("a", "get sets.apps", "list sets.apps"), Ours: used("a", "get sets.apps")},
		{Reference: used("b", "get pods"), Ours: used("a", "patch sets.apps")},
	})
	want := []RoleUse{
		{Controller: "a", Resource: "sets.apps", Reference: []string{"get", "list"}, Ours: []string{"get", "patch"}, Allowed: []string{"get", "list"}},
		{Controller: "a", Resource: "sets.apps/status", Allowed: []string{"get", "list"}},
	}
	if diff := cmp.Diff(want, uses); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"b"}, others); diff != "" {
		t.Error(diff)
	}
	var got []string
	for _, f := range Exceeds(uses) {
		got = append(got, f.Controller+" "+f.Subject)
	}
	if diff := cmp.Diff([]string{"a patch sets.apps"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestReasonsOfOneBinaryOnlyAreFindings(t *testing.T) {
	events := func(texts ...string) *Record {
		r := &Record{Events: map[string]map[string]int{"c": {}}}
		for _, text := range texts {
			r.Events["c"][text]++
		}
		return r
	}
	findings := Reasons([]Result{
		{Reference: events("Pod a: Normal Made: x", "Pod a: Warning Chance: x"), Ours: events("Pod b: Normal Made: y"),
			Passing: []Finding{{Controller: "c", Kind: KindEvent, Subject: "Pod a: Warning Chance: x"}}},
		{Reference: events(), Ours: events("Pod a: Normal New: x")},
		{Reference: events("Pod a: Normal Seldom: x"), Ours: events(), Chance: []Finding{{Controller: "c", Kind: KindEvent, Subject: "Pod a: Normal Seldom: x"}}},
	})
	var got []string
	for _, f := range findings {
		got = append(got, f.Subject+": "+f.Detail)
	}
	if diff := cmp.Diff([]string{"Pod Normal New: 0 times with the reference, 1 times with ours"}, got); diff != "" {
		t.Error(diff)
	}
}
