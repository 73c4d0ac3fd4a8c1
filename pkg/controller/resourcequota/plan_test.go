package resourcequota

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/monitor"
	"github.com/kube-kcm/kube-controller-manager/pkg/quota"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func ago(d time.Duration) time.Time { return noon.Add(-d) }

// list reads "cpu=1 memory=2Gi".
func list(text string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for _, field := range strings.Fields(text) {
		name, quantity, _ := strings.Cut(field, "=")
		l[corev1.ResourceName(name)] = resource.MustParse(quantity)
	}
	return l
}

// limits makes a quota from the lists of spec.hard, status.hard and status.used.
func limits(spec, hard, used string) *corev1.ResourceQuota {
	q := &corev1.ResourceQuota{}
	q.Namespace, q.Name, q.UID, q.ResourceVersion = "ns", "q", "u", "5"
	q.Spec.Hard, q.Status.Hard, q.Status.Used = list(spec), list(hard), list(used)
	return q
}

func TestDecide(t *testing.T) {
	const two = "pods=5 configmaps=5"
	for name, tc := range map[string]struct {
		quota   *corev1.ResourceQuota
		counted string
		ahead   string
		want    string
		held    string
		why     string
	}{
		"a new quota gets limits and usage":     {limits(two, "", ""), "pods=1 configmaps=2", "", "pods=1 configmaps=2", "", "the limits changed"},
		"nothing to do":                         {limits(two, two, "pods=1 configmaps=2"), "pods=1 configmaps=2", "", "-", "", "nothing differs"},
		"the same in other words":               {limits("cpu=1", "cpu=1000m", "cpu=500m"), "cpu=0.5", "", "-", "", "nothing differs"},
		"more":                                  {limits(two, two, "pods=1 configmaps=2"), "pods=3 configmaps=2", "", "pods=3 configmaps=2", "", "more is used"},
		"more than was charged":                 {limits(two, two, "pods=1 configmaps=2"), "pods=3 configmaps=2", "pods=1", "pods=3 configmaps=2", "", "more is used"},
		"less":                                  {limits(two, two, "pods=1 configmaps=2"), "pods=0 configmaps=2", "", "pods=0 configmaps=2", "", "less is used"},
		"less, and all of it is ahead":          {limits(two, two, "pods=1 configmaps=2"), "pods=0 configmaps=2", "pods=1", "-", "pods=1", "less is used, but some charges may be for objects that are not seen yet"},
		"less, and part of it is ahead":         {limits(two, two, "pods=4 configmaps=2"), "pods=1 configmaps=2", "pods=2", "pods=3 configmaps=2", "pods=2", "less is used"},
		"more is ahead than the usage holds":    {limits(two, two, "pods=2 configmaps=2"), "pods=1 configmaps=2", "pods=3", "-", "pods=1", "less is used, but some charges may be for objects that are not seen yet"},
		"another name is ahead":                 {limits(two, two, "pods=1 configmaps=2"), "pods=0 configmaps=1", "configmaps=1", "pods=0 configmaps=2", "configmaps=1", "less is used"},
		"less and more":                         {limits(two, two, "pods=1 configmaps=2"), "pods=0 configmaps=3", "pods=1", "pods=1 configmaps=3", "pods=1", "more is used"},
		"what is not counted stays":             {limits(two, two, "pods=1 configmaps=2"), "pods=0", "", "pods=0 configmaps=2", "", "less is used"},
		"what was never counted has no usage":   {limits(two, two, "pods=1"), "pods=1", "", "-", "", "nothing differs"},
		"a limit that is gone takes its usage":  {limits("pods=5", "pods=5", "pods=1 configmaps=2"), "pods=1", "", "pods=1", "", "the names changed"},
		"new limits":                            {limits("pods=6", "pods=5", "pods=1"), "pods=1", "", "pods=1", "", "the limits changed"},
		"new limits take no charge back":        {limits("pods=6", "pods=5", "pods=4"), "pods=1", "pods=2", "pods=3", "pods=2", "the limits changed"},
		"a quota without limits has no status":  {limits("", "", ""), "", "", "-", "", "nothing differs"},
		"what was counted beyond it is ignored": {limits("pods=5", "pods=5", "pods=1"), "pods=1 cpu=3", "", "-", "", "nothing differs"},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.quota.DeepCopy()
			got := decide(tc.quota, list(tc.counted), list(tc.ahead))
			if got.why != tc.why {
				t.Errorf("because %q", got.why)
			}
			if !quota.Same(got.ahead, list(tc.held)) {
				t.Errorf("holds %v for what is ahead", got.ahead)
			}
			switch {
			case tc.want == "-":
				if got.writes {
					t.Errorf("writes %v", got.used)
				}
			case !got.writes:
				t.Error("writes nothing")
			case !quota.Same(got.used, list(tc.want)):
				t.Errorf("writes %v", got.used)
			}
			if diff := cmp.Diff(before, tc.quota); diff != "" {
				t.Errorf("the cached object was changed: %s", diff)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	stuck := func(since time.Duration, err error) usage {
		return usage{used: list("pods=1"), next: time.Minute, frozen: []frozen{{of: widgets, names: []corev1.ResourceName{"count/widgets.example.com"}, err: err, since: ago(since), broken: err != nil}}}
	}
	const stays = "; count/widgets.example.com stays: widgets.example.com "
	const more = "more is used: pods=1"
	down, told := errors.New("down"), map[schema.GroupResource]bool{widgets: true}
	q := limits("pods=5", "pods=5", "pods=0")
	waiting := stuck(0, nil)
	waiting.loading = true
	for name, tc := range map[string]struct {
		o     observed
		wants string
		again time.Duration
		why   string
	}{
		"before a first list":        {observed{known: known{quota: q}, usage: waiting}, "", soon, "waiting for first lists" + stays + "is not listed yet, since 2026-01-01T12:00:00Z"},
		"a list that does not come":  {observed{known: known{quota: q}, usage: stuck(time.Hour, nil)}, "pods=1", time.Minute, more + stays + "is not listed yet, since 2026-01-01T11:00:00Z"},
		"a charge that may be ahead": {observed{known: known{quota: q, until: noon.Add(time.Second)}, usage: usage{used: list("pods=1")}}, "pods=1", time.Second, more},
		"a charge that was ahead":    {observed{known: known{quota: q, until: ago(time.Second)}, usage: usage{used: list("pods=0")}}, "", time.Millisecond, "nothing differs: pods=0"},
		"new limits":                 {observed{known: known{quota: limits("pods=6", "pods=5", "pods=0")}, usage: usage{used: list("pods=0")}}, "pods=0", 0, "the limits changed: pods=0"},
		"broken for a moment":        {observed{known: known{quota: q}, usage: stuck(time.Second, down)}, "pods=1", brokenFor - time.Second, more + stays + "cannot be read since 2026-01-01T11:59:59Z: down"},
		"broken for long": {observed{known: known{quota: q}, usage: stuck(brokenFor, down)},
			"Warning UsageFrozen Usage of count/widgets.example.com is not updated because widgets.example.com cannot be read: down; pods=1", time.Minute, more + stays + "cannot be read since 2026-01-01T11:59:55Z: down"},
		"broken, and told": {observed{known: known{quota: q, told: told}, usage: stuck(time.Hour, down)}, "pods=1", time.Minute, more + stays + "cannot be read since 2026-01-01T11:00:00Z: down"},
		"broken no more": {observed{known: known{quota: q, told: told}, usage: usage{used: list("pods=0")}},
			"Normal UsageCounted widgets.example.com can be read again; its usage is updated; ", 0, "nothing differs: pods=0"},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(tc.o, noon)
			var wants string
			for _, stage := range p.Stages {
				e := stage.Steps[0].(act.Event)
				wants += strings.Join([]string{e.Type, e.Reason, e.Message}, " ") + "; "
			}
			if p.Status != nil {
				written := tc.o.quota.DeepCopy()
				p.Status(nil).(act.Status).Set(written)
				wants += strings.TrimPrefix(quantities(written.Status.Used), ": ")
				if !quota.Same(written.Status.Hard, tc.o.quota.Spec.Hard) {
					t.Errorf("writes the limits %v", written.Status.Hard)
				}
			}
			if wants != tc.wants || p.Why != tc.why || p.RequeueAfter != tc.again {
				t.Errorf("wants %q because %q, again after %s", wants, p.Why, p.RequeueAfter)
			}
		})
	}
}

func TestWhatIsRememberedOfAWrite(t *testing.T) {
	q, wrote := limits("pods=5", "pods=5", "pods=0"), limits("pods=5", "pods=5", "pods=1")
	o := observed{known: known{quota: q}, usage: usage{used: list("pods=1")}, began: noon}
	for name, tc := range map[string]struct {
		result act.Result
		want   outcome
	}{
		"it is written":        {act.Result{Became: act.Done, Object: wrote}, outcome{began: noon, wrote: wrote}},
		"there is a newer one": {act.Result{Became: act.Overtaken}, outcome{began: noon, overtaken: "5"}},
		"it is refused":        {act.Result{Became: act.Refused, Err: errors.New("no")}, outcome{began: noon, failed: true}},
	} {
		t.Run(name, func(t *testing.T) {
			got := plan(o, noon).Note(act.Results{tc.result}).(outcome)
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(outcome{}), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhichVersionsOfAQuotaAreTheSame(t *testing.T) {
	before := limits("pods=5", "pods=5", "pods=1")
	for name, tc := range map[string]struct {
		after *corev1.ResourceQuota
		other types.UID
		want  bool
	}{
		"nothing differs":           {limits("pods=5", "pods=5", "pods=1"), "", true},
		"in other words":            {limits("pods=5000m", "pods=5", "pods=1"), "", true},
		"another of the name":       {limits("pods=5", "pods=5", "pods=1"), "another", false},
		"other limits":              {limits("pods=6", "pods=5", "pods=1"), "", false},
		"other limits are in force": {limits("pods=5", "pods=6", "pods=1"), "", false},
		"another usage":             {limits("pods=5", "pods=5", "pods=2"), "", false},
		"another scope":             {scoped(limits("pods=5", "pods=5", "pods=1"), "high"), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			tc.after.ResourceVersion = "6"
			if tc.other != "" {
				tc.after.UID = tc.other
			}
			if got := sameQuota(before, tc.after); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// scoped is the quota for the pods of a priority class.
func scoped(q *corev1.ResourceQuota, class string) *corev1.ResourceQuota {
	q.Spec.ScopeSelector = &corev1.ScopeSelector{MatchExpressions: []corev1.ScopedResourceSelectorRequirement{{
		ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: corev1.ScopeSelectorOpIn, Values: []string{class}}}}
	return q
}

func TestUrgent(t *testing.T) {
	countable := func(name corev1.ResourceName) bool { return name != "example.com/x" }
	for name, tc := range map[string]struct {
		quota *corev1.ResourceQuota
		want  bool
	}{
		"a new quota":                        {limits("pods=1", "", ""), true},
		"other limits":                       {limits("pods=2", "pods=1", "pods=0"), true},
		"a usage is missing":                 {limits("pods=1", "pods=1", ""), true},
		"a usage that nobody knows":          {limits("example.com/x=1", "example.com/x=1", ""), false},
		"all is there, though it may be old": {limits("pods=1", "pods=1", "pods=7"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := urgent(tc.quota, countable); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestSourceOf(t *testing.T) {
	of := schema.GroupResource{Group: "example.com", Resource: "things"}
	failing := map[schema.GroupVersion]error{{Group: "example.com", Version: "v1"}: errors.New("down")}
	for name, tc := range map[string]struct {
		state monitor.State
		known bool
		fails map[schema.GroupVersion]error
		want  health
	}{
		"listed":                         {monitor.State{Listed: true}, true, nil, served},
		"listed, though its group fails": {monitor.State{Listed: true}, true, failing, served},
		"not yet":                        {monitor.State{}, true, nil, loading},
		"listed once and failing":        {monitor.State{Listed: true, Err: errors.New("x")}, true, nil, broken},
		"never listed and failing":       {monitor.State{Err: errors.New("x")}, true, nil, broken},
		"not known":                      {monitor.State{}, false, nil, absent},
		"not known, as its group fails":  {monitor.State{}, false, failing, broken},
		"not known, and another fails":   {monitor.State{}, false, map[schema.GroupVersion]error{{Group: "other"}: errors.New("x")}, absent},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sourceOf(of, tc.state, tc.known, tc.fails); got.health != tc.want || (got.health == broken) != (got.err != nil) {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestTotal(t *testing.T) {
	widgets := schema.GroupResource{Group: "example.com", Resource: "widgets"}
	counts := map[corev1.ResourceName][]schema.GroupResource{
		"pods": {quota.Pods}, "cpu": {quota.Pods}, "requests.example.com/gpu": {quota.Pods, quota.DeviceClaims},
		"count/widgets.example.com": {widgets}, "example.com/x": nil,
	}
	sums := map[schema.GroupResource]corev1.ResourceList{
		quota.Pods: list("pods=2 requests.example.com/gpu=3 memory=7"), quota.DeviceClaims: list("requests.example.com/gpu=4"),
	}
	for name, tc := range map[string]struct {
		stuck map[schema.GroupResource]*frozen
		want  string
	}{
		"nothing is stuck": {nil, "pods=2 cpu=0 requests.example.com/gpu=7"},
		"widgets are":      {map[schema.GroupResource]*frozen{widgets: {}}, "pods=2 cpu=0 requests.example.com/gpu=7"},
		"a name with a part that is stuck is frozen": {map[schema.GroupResource]*frozen{quota.DeviceClaims: {}}, "pods=2 cpu=0"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := total(counts, sums, tc.stuck); !quota.Same(got, list(tc.want)) {
				t.Errorf("got %v", got)
			}
			for of, f := range tc.stuck {
				if len(f.names) != 1 {
					t.Errorf("%s freezes %v", of, f.names)
				}
			}
		})
	}
}

func TestWants(t *testing.T) {
	all := []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	resource := func(group, name string, namespaced bool, verbs ...string) monitor.Resource {
		return monitor.Resource{GroupVersionResource: schema.GroupVersionResource{Group: group, Version: "v1", Resource: name}, Namespaced: namespaced, Verbs: verbs}
	}
	for name, tc := range map[string]struct {
		r    monitor.Resource
		want bool
	}{
		"secrets":                   {resource("", "secrets", true, all...), true},
		"nodes":                     {resource("", "nodes", false, all...), false},
		"events":                    {resource("", "events", true, all...), false},
		"events, the new ones":      {resource("events.k8s.io", "events", true, all...), false},
		"events of somebody else":   {resource("example.com", "events", true, all...), true},
		"metrics cannot be watched": {resource("metrics.k8s.io", "pods", true, "get", "list"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wants(tc.r); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}
