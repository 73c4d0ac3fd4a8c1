package podgc

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

type change func(*corev1.Pod)

// pod is a running pod on node n1, an hour old.
func pod(name string, changes ...change) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.UID, p.Generation = "team", name, types.UID("uid-"+name), 3
	p.CreationTimestamp = metav1.NewTime(noon.Add(-time.Hour))
	p.Spec.NodeName = "n1"
	p.Status.Phase = corev1.PodRunning
	for _, change := range changes {
		change(p)
	}
	return p
}

func on(node string) change              { return func(p *corev1.Pod) { p.Spec.NodeName = node } }
func phase(phase corev1.PodPhase) change { return func(p *corev1.Pod) { p.Status.Phase = phase } }
func age(age time.Duration) change {
	return func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(noon.Add(-age)) }
}
func evictedPod(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted" }
func ending(grace int64) change {
	return func(p *corev1.Pod) {
		at := metav1.NewTime(noon)
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &at, &grace
	}
}

func names(pods []*corev1.Pod) []string {
	var all []string
	for _, p := range pods {
		all = append(all, p.Name)
	}
	return all
}

func TestSurplus(t *testing.T) {
	ended := phase(corev1.PodSucceeded)
	pods := []*corev1.Pod{
		pod("young", ended, age(time.Minute)), pod("old", ended, age(3*time.Hour)), pod("twin-b", ended, age(2*time.Hour)),
		pod("twin-a", ended, age(2*time.Hour)), pod("evicted", evictedPod, age(time.Second)),
	}
	for name, tc := range map[string]struct {
		threshold int
		want      []string
	}{
		"evicted pods go first":                  {4, []string{"evicted"}},
		"then the oldest, and twins by name":     {1, []string{"evicted", "old", "twin-a", "twin-b"}},
		"as many as the threshold may stay":      {5, nil},
		"a threshold of zero keeps all":          {0, nil},
		"a negative threshold keeps all":         {-1, nil},
		"a threshold above the number keeps all": {100, nil},
	} {
		t.Run(name, func(t *testing.T) {
			given := slices.Clone(pods)
			if diff := cmp.Diff(tc.want, names(surplus(given, tc.threshold))); diff != "" {
				t.Error(diff)
			}
			if !slices.Equal(given, pods) {
				t.Error("the caller's slice was sorted")
			}
		})
	}
}

func node(ready corev1.ConditionStatus, taints ...string) *corev1.Node {
	n := &corev1.Node{}
	n.Name = "n1"
	if ready != "" {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	}
	for _, key := range taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute})
	}
	return n
}

func TestOutOfReach(t *testing.T) {
	const taint = "node.kubernetes.io/out-of-service"
	for name, tc := range map[string]struct {
		node *corev1.Node
		want bool
	}{
		"not ready and out of service":            {node("False", "a", taint), true},
		"unknown and out of service":              {node("Unknown", taint), true},
		"never reported and out of service":       {node("", taint), true},
		"ready, so its kubelet ends its pods":     {node("True", taint), false},
		"not ready, but not taken out of service": {node("False", "node.kubernetes.io/not-ready"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := outOfReach(tc.node); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestAbsent(t *testing.T) {
	got := absent([]string{"n3", "", "n1", "n2"}, func(node string) bool { return node == "n1" })
	if diff := cmp.Diff([]string{"n2", "n3"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestBeingDeleted(t *testing.T) {
	got := beingDeleted([]*corev1.Pod{pod("live"), pod("b", ending(30)), pod("a", ending(30)), pod("old", ending(0), age(2*time.Hour))})
	if diff := cmp.Diff([]string{"old", "a", "b"}, names(got)); diff != "" {
		t.Error(diff)
	}
}

func TestStepFor(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want step
	}{
		"a running pod fails and goes":                    {pod("a"), step{Fail: true, Delete: true}},
		"a pending pod fails and goes":                    {pod("a", phase(corev1.PodPending)), step{Fail: true, Delete: true}},
		"a pod that has ended keeps its phase":            {pod("a", phase(corev1.PodSucceeded)), step{Delete: true}},
		"a failed pod keeps its phase":                    {pod("a", phase(corev1.PodFailed)), step{Delete: true}},
		"a graceful deletion is cut short":                {pod("a", ending(30), phase(corev1.PodFailed)), step{Delete: true}},
		"a deletion without a period is cut short":        {pod("a", ending(0), func(p *corev1.Pod) { p.DeletionGracePeriodSeconds = nil }), step{Fail: true, Delete: true}},
		"one that only finalizers hold is left alone":     {pod("a", ending(0), phase(corev1.PodFailed)), step{}},
		"one that finalizers hold still is marked Failed": {pod("a", ending(0)), step{Fail: true}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stepFor(tc.pod); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
			if part, is := tc.want.of(tc.pod, orphaned, noon).(act.Part); is && (part.Deletes == tc.pod) != tc.want.Delete {
				t.Errorf("it waits for the turn of %v", part.Deletes)
			}
		})
	}
}

func TestFailPatch(t *testing.T) {
	disrupted := func(p *corev1.Pod) {
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: "True", Reason: "EvictionByEvictionAPI",
			LastTransitionTime: metav1.NewTime(noon.Add(-time.Minute))}}
	}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		why  reason
		want string
	}{
		"a pod whose node is gone gets the condition": {pod("a"), orphaned,
			`{"metadata":{"uid":"uid-a"},"status":{"observedGeneration":3,"phase":"Failed","$setElementOrder/conditions":[{"type":"DisruptionTarget"}],"conditions":[{"type":"DisruptionTarget","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-01T12:00:00Z","observedGeneration":3,"reason":"DeletionByPodGC","message":"PodGC: node no longer exists"}]}}`},
		"the time of an earlier disruption stays": {pod("a", disrupted), orphaned,
			`{"metadata":{"uid":"uid-a"},"status":{"observedGeneration":3,"phase":"Failed","$setElementOrder/conditions":[{"type":"DisruptionTarget"}],"conditions":[{"type":"DisruptionTarget","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-01T11:59:00Z","observedGeneration":3,"reason":"DeletionByPodGC","message":"PodGC: node no longer exists"}]}}`},
		"one that did not take place has no time": {pod("a", disrupted, func(p *corev1.Pod) { p.Status.Conditions[0].Status = "False" }), orphaned,
			`{"metadata":{"uid":"uid-a"},"status":{"observedGeneration":3,"phase":"Failed","$setElementOrder/conditions":[{"type":"DisruptionTarget"}],"conditions":[{"type":"DisruptionTarget","status":"True","lastProbeTime":null,"lastTransitionTime":"2026-03-01T12:00:00Z","observedGeneration":3,"reason":"DeletionByPodGC","message":"PodGC: node no longer exists"}]}}`},
		"a pod out of service only fails": {pod("a"), outOfService,
			`{"metadata":{"uid":"uid-a"},"status":{"observedGeneration":3,"phase":"Failed"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got := failPatch(tc.pod, tc.why, noon)
			if diff := cmp.Diff(tc.want, string(got.Data)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWhy(t *testing.T) {
	ended := []*corev1.Pod{pod("a", phase(corev1.PodFailed)), pod("b", phase(corev1.PodFailed)), pod("c", phase(corev1.PodFailed))}
	for want, o := range map[string]observed{
		"nothing to collect": {},
		"2 terminated pods above the threshold, 1 nodes absent and in quarantine": {threshold: 1, terminated: ended, absent: []string{"n"}},
	} {
		if got := plan(o, noon).Why; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestWhatCouldNotBeReadIsRetriedWhenTheRestIsCollected(t *testing.T) {
	broken := errors.New("broken")
	p := plan(observed{err: broken, unscheduled: []*corev1.Pod{pod("a", on(""), ending(30))}}, noon)
	if p.Err != nil || p.Then == nil {
		t.Fatalf("got %+v", p)
	}
	if p = p.Then(nil); p.Err != broken || p.RequeueAfter != period || len(p.Stages) != 1 {
		t.Errorf("got %+v", p)
	}
}
