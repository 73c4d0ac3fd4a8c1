package replicas

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
)

func TestOwnConditionsTakeTheirPlacesAmongOthers(t *testing.T) {
	const failure, backoff = appsv1.ReplicaSetReplicaFailure, rejections.Condition
	list := func(types ...appsv1.ReplicaSetConditionType) []appsv1.ReplicaSetCondition {
		var all []appsv1.ReplicaSetCondition
		for _, c := range types {
			all = append(all, appsv1.ReplicaSetCondition{Type: c})
		}
		return all
	}
	for name, tc := range map[string]struct{ there, wanted, want []appsv1.ReplicaSetCondition }{
		"none of all":              {},
		"new ones come last":       {list("x"), list("x", failure, backoff), list("x", failure, backoff)},
		"in their places":          {list(failure, "x", backoff), list(failure, "x", backoff), list(failure, "x", backoff)},
		"what is over goes":        {list(failure, "x", backoff), list("x"), list("x")},
		"another's that came":      {list("x", failure, "y"), list("x", failure), list("x", failure, "y")},
		"another's that went":      {list(failure), list("x", failure, backoff), list(failure, backoff)},
		"one that another removed": {list("x"), list(failure, "x"), list("x", failure)},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, among(tc.there, tc.wanted)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestStatusOf(t *testing.T) {
	patient := set(3)
	patient.MinReadySeconds = 60
	canary := set(1)
	canary.Template.Labels = map[string]string{"app": "web", "track": "canary"}
	failing := set(1)
	first := appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue,
		Reason: "FailedCreate", Message: "first", LastTransitionTime: ago(time.Hour)}
	foreign := appsv1.ReplicaSetCondition{Type: "Foreign", Status: corev1.ConditionTrue}
	failing.Status.Conditions = []appsv1.ReplicaSetCondition{first, foreign}
	for name, tc := range map[string]struct {
		o      Observed
		active []*corev1.Pod
		failed *failure
		want   appsv1.ReplicaSetStatus
	}{
		"the generation is noted even without pods": {
			o: Observed{Set: set(1)}, want: appsv1.ReplicaSetStatus{ObservedGeneration: 3}},
		"ready pods are counted": {
			active: []*corev1.Pod{pod("a"), pod("b", unready)}, o: Observed{Set: set(2)},
			want: appsv1.ReplicaSetStatus{ObservedGeneration: 3, Replicas: 2, FullyLabeledReplicas: 2,
				ReadyReplicas: 1, AvailableReplicas: 1}},
		"a pod is available when it was ready for long enough": {
			active: []*corev1.Pod{pod("a"), pod("b", ready(ago(time.Minute))), pod("c", ready(ago(59*time.Second)))}, o: Observed{Set: patient},
			want: appsv1.ReplicaSetStatus{ObservedGeneration: 3, Replicas: 3, FullyLabeledReplicas: 3,
				ReadyReplicas: 3, AvailableReplicas: 2}},
		"a pod without all the template's labels is not fully labeled": {
			active: []*corev1.Pod{pod("a"), pod("b", labeled("track", "canary"))}, o: Observed{Set: canary},
			want: appsv1.ReplicaSetStatus{ObservedGeneration: 3, Replicas: 2, FullyLabeledReplicas: 1,
				ReadyReplicas: 2, AvailableReplicas: 2}},
		"pods on their way out are counted apart": {
			active: many(1), o: Observed{Set: set(1), Terminating: many(2), CountTerminating: true},
			want: appsv1.ReplicaSetStatus{ObservedGeneration: 3, Replicas: 1, FullyLabeledReplicas: 1,
				ReadyReplicas: 1, AvailableReplicas: 1, TerminatingReplicas: ptr.To(int32(2))}},
		"pods on their way out are not counted where that is off": {
			o: Observed{Set: set(1), Terminating: many(2)}, want: appsv1.ReplicaSetStatus{ObservedGeneration: 3}},
		"a failure is told": {
			o: Observed{Set: set(1)}, failed: &failure{"FailedCreate", "exceeded quota"},
			want: appsv1.ReplicaSetStatus{ObservedGeneration: 3, Conditions: []appsv1.ReplicaSetCondition{
				{Type: "ReplicaFailure", Status: "True", Reason: "FailedCreate", Message: "exceeded quota", LastTransitionTime: ago(0)}}}},
		"a failure that goes on stays as first told": {
			o: Observed{Set: failing}, failed: &failure{"FailedDelete", "second"},
			want: appsv1.ReplicaSetStatus{ObservedGeneration: 3, Conditions: []appsv1.ReplicaSetCondition{first, foreign}}},
		"a failure that is over is taken back, and nothing else": {
			o:    Observed{Set: failing},
			want: appsv1.ReplicaSetStatus{ObservedGeneration: 3, Conditions: []appsv1.ReplicaSetCondition{foreign}}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, statusOf(tc.o, tc.active, tc.failed, noon)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestReported(t *testing.T) {
	base := appsv1.ReplicaSetStatus{Replicas: 1, ObservedGeneration: 3, TerminatingReplicas: ptr.To(int32(0))}
	if !reported(base, *base.DeepCopy()) {
		t.Error("the same status counts as new")
	}
	for name, change := range map[string]func(*appsv1.ReplicaSetStatus){
		"generation":  func(s *appsv1.ReplicaSetStatus) { s.ObservedGeneration++ },
		"terminating": func(s *appsv1.ReplicaSetStatus) { s.TerminatingReplicas = nil },
		"conditions": func(s *appsv1.ReplicaSetStatus) {
			s.Conditions = withFailure(nil, &failure{}, noon)
		},
	} {
		changed := *base.DeepCopy()
		change(&changed)
		if reported(base, changed) {
			t.Errorf("a change of %s is not noticed", name)
		}
	}
}
