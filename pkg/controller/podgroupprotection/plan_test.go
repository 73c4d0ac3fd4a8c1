package podgroupprotection

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
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

// wants is what a plan is to say.
type wants struct {
	update *schedulingv1alpha2.PodGroup
	why    string
}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		group *schedulingv1alpha2.PodGroup
		pods  []*corev1.Pod
		want  wants
	}{
		"a group that nobody deletes is left alone":     {group(false, Finalizer), nil, wants{why: "the group is not being deleted"}},
		"no finalizer is added":                         {group(true, "x"), nil, wants{why: "the group is not protected"}},
		"a running pod holds it":                        {group(true, Finalizer), []*corev1.Pod{pod("a", corev1.PodRunning)}, wants{why: "pod a needs it"}},
		"a pending pod holds it":                        {group(true, Finalizer), []*corev1.Pod{pod("a", corev1.PodPending)}, wants{why: "pod a needs it"}},
		"a pod that is being deleted holds it":          {group(true, Finalizer), []*corev1.Pod{terminating(pod("a", corev1.PodRunning))}, wants{why: "pod a needs it"}},
		"one live pod among ended ones holds it":        {group(true, Finalizer), []*corev1.Pod{pod("a", corev1.PodFailed), pod("b", corev1.PodRunning)}, wants{why: "pod b needs it"}},
		"without pods it is set free":                   {group(true, Finalizer), nil, wants{update: group(true), why: "no pod needs it"}},
		"pods that have ended do not hold it":           {group(true, Finalizer), []*corev1.Pod{pod("a", corev1.PodSucceeded), pod("b", corev1.PodFailed)}, wants{update: group(true), why: "no pod needs it"}},
		"the finalizers of others stay, in their order": {group(true, "x", Finalizer, "y"), nil, wants{update: group(true, "x", "y"), why: "no pod needs it"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.group.DeepCopy()
			p := plan(observed{tc.group, tc.pods}, time.Time{})
			got := wants{why: p.Why}
			if len(p.Stages) > 0 {
				got.update = p.Stages[0].Steps[0].(act.Update).Object.(*schedulingv1alpha2.PodGroup)
				if len(got.update.Finalizers) == 0 {
					got.update.Finalizers = nil
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(wants{})); diff != "" {
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
