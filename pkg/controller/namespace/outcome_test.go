package namespace

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
)

var (
	noon       = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	configMaps = resource{gvr: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, list: true, deleteCollection: true}
	widgets    = resource{gvr: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}, list: true}
	pods       = resource{gvr: podResource, list: true, deleteCollection: true}
)

func pod(grace int64, phase corev1.PodPhase) corev1.Pod {
	return corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &grace}, Status: corev1.PodStatus{Phase: phase}}
}

func TestPodGrace(t *testing.T) {
	for name, tc := range map[string]struct {
		pods []corev1.Pod
		age  time.Duration
		want int64
	}{
		"no pods take no time":                        {nil, 0, 0},
		"the longest grace period counts":             {[]corev1.Pod{pod(5, ""), pod(30, ""), pod(20, "")}, 5 * time.Second, 30},
		"pods that have ended take no time":           {[]corev1.Pod{pod(30, corev1.PodFailed), pod(30, corev1.PodSucceeded)}, 0, 0},
		"a grace period that has passed is none":      {[]corev1.Pod{pod(30, "")}, 30 * time.Second, 0},
		"one second before, it still counts":          {[]corev1.Pod{pod(30, "")}, 29 * time.Second, 30},
		"a grace period beyond what a duration holds": {[]corev1.Pod{pod(12_000_000_000, "")}, time.Hour, 12_000_000_000},
		"a pod without a grace period takes no time":  {[]corev1.Pod{{}}, 0, 0},
		"pods to be killed at once take no time":      {[]corev1.Pod{pod(0, "")}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := graceLeft(longestGrace(tc.pods), noon, noon.Add(tc.age)); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func counted(finalizers ...[]string) tally {
	var t tally
	for _, f := range finalizers {
		t.add(&metav1.ObjectMeta{Finalizers: f})
	}
	return t
}

func TestJudge(t *testing.T) {
	for name, tc := range map[string]struct {
		tally tally
		grace int64
		want  remainder
		fails string
	}{
		"nothing left is nothing left": {counted(), 30, remainder{}, ""},
		"what ends gracefully takes its grace period": {
			counted(nil, nil), 30, remainder{count: 2, estimate: 30}, ""},
		"what has finalizers takes a while": {
			counted([]string{"a", "b"}, []string{"a"}, nil), 0, remainder{count: 3, estimate: 15, finalizers: map[string]int{"a": 2, "b": 1}}, ""},
		"the grace period comes before finalizers": {
			counted([]string{"a"}), 40, remainder{count: 1, estimate: 40, finalizers: map[string]int{"a": 1}}, ""},
		"what should be gone and is not is an error too": {
			counted(nil), 0, remainder{count: 1}, "unexpected items still remain in namespace: team for gvr: example.com/v1, Resource=widgets"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.tally.grace = tc.grace
			got, err := remainderOf("team", widgets, tc.tally)
			if (err == nil) != (tc.fails == "") || err != nil && err.Error() != tc.fails {
				t.Errorf("got error %v, want %q", err, tc.fails)
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(remainder{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestNeedDeleting(t *testing.T) {
	now := metav1.NewTime(noon)
	for name, tc := range map[string]struct {
		object metav1.ObjectMeta
		want   bool
	}{
		"a living object":                                   {metav1.ObjectMeta{}, true},
		"a living object with finalizers":                   {metav1.ObjectMeta{Finalizers: []string{"a"}}, true},
		"one whose deletion is under way":                   {metav1.ObjectMeta{DeletionTimestamp: &now, Finalizers: []string{"a"}}, false},
		"one that waits for its dependents is made to stop": {metav1.ObjectMeta{DeletionTimestamp: &now, Finalizers: []string{"foregroundDeletion"}}, true},
		"one that orphans its dependents is made to stop":   {metav1.ObjectMeta{DeletionTimestamp: &now, Finalizers: []string{"orphan"}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := needDeleting(&tc.object); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestWait(t *testing.T) {
	for name, tc := range map[string]struct {
		estimate int64
		resync   time.Duration
		want     time.Duration
	}{
		"half of what it may take":                     {30, 5 * time.Minute, 16 * time.Second},
		"finalizers are looked at after eight seconds": {15, 5 * time.Minute, 8 * time.Second},
		"never longer than the resync":                 {7200, 5 * time.Minute, 5 * time.Minute},
		"without a resync, as long as it takes":        {7200, 0, 3601 * time.Second},
		"a grace period beyond what a duration holds":  {20_000_000_000, 5 * time.Minute, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			if got := (&outcome{estimate: tc.estimate}).wait(tc.resync); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestNewCatalog(t *testing.T) {
	verbs := func(v ...string) metav1.Verbs { return v }
	incomplete := errors.New("a group is down")
	got := newCatalog([]*metav1.APIResourceList{
		{GroupVersion: "v1", APIResources: []metav1.APIResource{
			{Name: "pods", Namespaced: true, Verbs: verbs("delete", "deletecollection", "list", "get")},
			{Name: "bindings", Namespaced: true, Verbs: verbs("create")},
			{Name: "configmaps", Namespaced: true, Verbs: verbs("delete", "deletecollection", "list")},
		}},
		{GroupVersion: "metrics.k8s.io/v1", APIResources: []metav1.APIResource{{Name: "pods", Verbs: verbs("get", "list")}}},
		{GroupVersion: "a/b/c", APIResources: []metav1.APIResource{{Name: "x", Verbs: verbs("delete")}}},
		{GroupVersion: "d/e/f", APIResources: []metav1.APIResource{{Name: "y", Verbs: verbs("get", "list")}}},
		{GroupVersion: "example.com/v1", APIResources: []metav1.APIResource{{Name: "widgets", Verbs: verbs("delete", "list")}}},
	}, incomplete, []string{"down.example.com/v1"})
	if diff := cmp.Diff([]resource{configMaps, pods, widgets}, got.resources, cmp.AllowUnexported(resource{})); diff != "" {
		t.Error(diff)
	}
	if len(got.unparsed) != 1 || got.unparsed[0].Error() != "unexpected GroupVersion string: a/b/c" || got.incomplete != incomplete || len(got.failing) != 1 {
		t.Errorf("unparsed %v, incomplete %v", got.unparsed, got.incomplete)
	}
	if !got.lists(widgets.gvr) {
		t.Error("verbs are not those of discovery")
	}
}

func TestWhatDiscoveryLacksIsNamed(t *testing.T) {
	for want, c := range map[string]*catalog{
		";":                served(),
		"a.io/v1,b.io/v1;": served("a.io/v1", "b.io/v1"),
		"all;":             {incomplete: errDown},
		";a/b/c, d/e/f":    {unparsed: []error{errors.New("d/e/f"), errors.New("a/b/c")}},
		"a.io/v1;d/e/f":    {incomplete: errDown, failing: []string{"a.io/v1"}, unparsed: []error{errors.New("d/e/f")}},
	} {
		if got := c.troubles(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestPodsOf(t *testing.T) {
	first, rest := podsOf([]resource{configMaps, pods, widgets})
	if diff := cmp.Diff([][]resource{{pods}, {configMaps, widgets}}, [][]resource{first, rest}, cmp.AllowUnexported(resource{})); diff != "" {
		t.Error(diff)
	}
}

func TestMessages(t *testing.T) {
	groups := &discovery.ErrGroupDiscoveryFailed{Groups: map[schema.GroupVersion]error{
		{Group: "b.example.com", Version: "v1"}: errors.New("down"), {Group: "a.example.com", Version: "v1"}: errors.New("stale"),
	}}
	for name, tc := range map[string]struct{ got, want string }{
		"remaining": {
			describeRemaining(map[schema.GroupVersionResource]int{widgets.gvr: 1, configMaps.gvr: 2}),
			"Some resources are remaining: configmaps. has 2 resource instances, widgets.example.com has 1 resource instances"},
		"finalizers": {
			describeFinalizers(map[string]int{"b/x": 1, "a/x": 3}),
			"Some content in the namespace has finalizers remaining: a/x in 3 resource instances, b/x in 1 resource instances"},
		"failures": {
			describeFailures([]error{errors.New("two"), errors.New("one")}),
			"Failed to delete all resource types, 2 remaining: one, two"},
		"groups that are down": {
			describeDiscovery(groups, 2),
			"Discovery failed for some groups, 2 failing: unable to retrieve the complete list of server APIs: a.example.com/v1: stale, b.example.com/v1: down"},
		"no discovery at all": {describeDiscovery(errors.New("connection refused"), 0), "connection refused"},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.got != tc.want {
				t.Errorf("got  %s\nwant %s", tc.got, tc.want)
			}
		})
	}
}
