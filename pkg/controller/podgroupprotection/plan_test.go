package podgroupprotection

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func group(deleted bool, finalizers ...string) *schedulingv1alpha2.PodGroup {
	g := &schedulingv1alpha2.PodGroup{}
	g.Namespace, g.Name, g.Finalizers = "team", "g", finalizers
	if deleted {
		g.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	}
	return g
}

func pod(name string, phase corev1.PodPhase) *corev1.Pod {
	p := &corev1.Pod{}
	p.Namespace, p.Name, p.UID, p.Status.Phase = "team", name, "u", phase
	g := "g"
	p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &g}
	return p
}

func terminating(p *corev1.Pod) *corev1.Pod {
	p.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	return p
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		group *schedulingv1alpha2.PodGroup
		pods  []*corev1.Pod
		want  plan
	}{
		"a group that is gone":                          {nil, nil, plan{Why: "the group is gone"}},
		"a group that nobody deletes is left alone":     {group(false, Finalizer), nil, plan{Why: "the group is not being deleted"}},
		"no finalizer is added":                         {group(true, "x"), nil, plan{Why: "the group is not protected"}},
		"a running pod holds it":                        {group(true, Finalizer), []*corev1.Pod{pod("a", corev1.PodRunning)}, plan{Why: "pod a needs it"}},
		"a pending pod holds it":                        {group(true, Finalizer), []*corev1.Pod{pod("a", corev1.PodPending)}, plan{Why: "pod a needs it"}},
		"a pod that is being deleted holds it":          {group(true, Finalizer), []*corev1.Pod{terminating(pod("a", corev1.PodRunning))}, plan{Why: "pod a needs it"}},
		"one live pod among ended ones holds it":        {group(true, Finalizer), []*corev1.Pod{pod("a", corev1.PodFailed), pod("b", corev1.PodRunning)}, plan{Why: "pod b needs it"}},
		"without pods it is set free":                   {group(true, Finalizer), nil, plan{update: group(true), Why: "no pod needs it"}},
		"pods that have ended do not hold it":           {group(true, Finalizer), []*corev1.Pod{pod("a", corev1.PodSucceeded), pod("b", corev1.PodFailed)}, plan{update: group(true), Why: "no pod needs it"}},
		"the finalizers of others stay, in their order": {group(true, "x", Finalizer, "y"), nil, plan{update: group(true, "x", "y"), Why: "no pod needs it"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.group.DeepCopy()
			got := decide(tc.group, tc.pods)
			if got.update != nil && len(got.update.Finalizers) == 0 {
				got.update.Finalizers = nil
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(plan{})); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, tc.group); diff != "" {
				t.Errorf("the cached object was changed: %s", diff)
			}
		})
	}
}

func TestWaking(t *testing.T) {
	other := pod("a", corev1.PodRunning)
	other.UID = "v"
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		want          bool
	}{
		"a new pod frees nothing":                  {nil, pod("a", corev1.PodPending), false},
		"a pod that only starts frees nothing":     {pod("a", corev1.PodPending), pod("a", corev1.PodRunning), false},
		"a pod whose deletion begins still counts": {pod("a", corev1.PodRunning), terminating(pod("a", corev1.PodRunning)), false},
		"a pod that ends may free its group":       {pod("a", corev1.PodRunning), pod("a", corev1.PodSucceeded), true},
		"a pod that has gone may free its group":   {pod("a", corev1.PodRunning), nil, true},
		"another pod of the name is a change":      {pod("a", corev1.PodRunning), other, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := waking(tc.before, tc.after); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestGroupOf(t *testing.T) {
	if got, ok := groupOf(pod("a", "")); !ok || got != (key{Namespace: "team", Name: "g"}) {
		t.Errorf("got %v, %v", got, ok)
	}
	lone := pod("a", "")
	lone.Spec.SchedulingGroup.PodGroupName = nil
	for _, p := range []*corev1.Pod{{}, lone} {
		if got, ok := groupOf(p); ok {
			t.Errorf("got %v for a pod without a group", got)
		}
	}
}
