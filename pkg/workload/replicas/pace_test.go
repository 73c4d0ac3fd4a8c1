package replicas

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
)

func TestOnlyStepsTowardsTheWantedNumberCanWait(t *testing.T) {
	counts := func(replicas, ready, available int32, terminating int32) appsv1.ReplicaSetStatus {
		return appsv1.ReplicaSetStatus{ObservedGeneration: 3, Replicas: replicas, FullyLabeledReplicas: replicas,
			ReadyReplicas: ready, AvailableReplicas: available, TerminatingReplicas: ptr.To(terminating)}
	}
	unseen := counts(3, 3, 3, 0)
	unseen.ObservedGeneration = 2
	grown := counts(5, 3, 3, 0)
	grown.ObservedGeneration = 4
	failing := counts(1, 0, 0, 0)
	failing.Conditions = []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue}}
	for name, tc := range map[string]struct {
		old, now appsv1.ReplicaSetStatus
		waits    bool
	}{
		"pods were made":                           {appsv1.ReplicaSetStatus{}, counts(3, 0, 0, 0), true},
		"one more is available":                    {counts(3, 1, 1, 0), counts(3, 2, 2, 0), true},
		"ready, and not available for a while":     {counts(3, 0, 0, 0), counts(3, 3, 0, 0), true},
		"pods that were on their way out are gone": {counts(3, 3, 3, 2), counts(3, 3, 3, 1), true},
		"all are available":                        {counts(3, 2, 2, 0), counts(3, 3, 3, 0), false},
		"a new generation with nothing to do":      {unseen, counts(3, 3, 3, 0), false},
		"a new generation with more pods to make":  {counts(3, 3, 3, 0), grown, true},
		"a pod is lost":                            {counts(3, 2, 2, 0), counts(2, 2, 2, 0), false},
		"a pod is no longer ready":                 {counts(3, 2, 2, 0), counts(3, 1, 1, 0), false},
		"there are fewer on purpose":               {counts(5, 5, 5, 0), counts(4, 4, 4, 1), false},
		"something fails":                          {counts(1, 0, 0, 0), failing, false},
		"and no longer":                            {failing, counts(1, 0, 0, 0), false},
	} {
		t.Run(name, func(t *testing.T) {
			s := set(3)
			s.Status = tc.old
			if got := underWay(s, tc.now); got != tc.waits {
				t.Errorf("can wait: %t", got)
			}
		})
	}
}

func TestAStepIsReportedWhenItsTimeHasCome(t *testing.T) {
	half := pod("b", owned, unready)
	client, _ := answering("none", "none", nil, replicaSet(2))
	b := newBench(t, client, replicaSet(2), pod("a", owned), half)
	b.reports.Sent(key, b.clock.Now().Add(-10*time.Millisecond))
	if result := b.Reconcile(t.Context(), key); result.After() != 200*time.Millisecond || count(client, "update", "replicasets/status") != 0 {
		t.Fatalf("looks again after %v; %d writes", result.After(), count(client, "update", "replicasets/status"))
	}
	b.clock.Step(200 * time.Millisecond)
	b.Reconcile(t.Context(), key)
	if status := statusOn(t, client); status.Replicas != 2 || status.AvailableReplicas != 1 {
		t.Errorf("reported %+v", status)
	}
}

// The next look at a set that fails is put off ever longer, so nothing of it waits.
func TestAStepOfASetThatFailsDoesNotWait(t *testing.T) {
	failing := replicaSet(2)
	failing.Status = appsv1.ReplicaSetStatus{ObservedGeneration: 3, Replicas: 1, FullyLabeledReplicas: 1, TerminatingReplicas: ptr.To[int32](0),
		Conditions: []appsv1.ReplicaSetCondition{{Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: quota.Error()}}}
	client, _ := answering("create", "pods", always(quota), failing)
	b := newBench(t, client, failing, pod("a", owned))
	b.reports.Sent(key, b.clock.Now().Add(-10*time.Millisecond))
	if err := b.Reconcile(t.Context(), key).Err(); !apierrors.IsForbidden(err) {
		t.Fatalf("got %v", err)
	}
	if status := statusOn(t, client); status.ReadyReplicas != 1 || status.AvailableReplicas != 1 {
		t.Errorf("reported %+v", status)
	}
}
