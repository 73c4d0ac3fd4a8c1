package deployment

import (
	"errors"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestOnlyNumbersOfARolloutCanWait(t *testing.T) {
	on := func(change func(*appsv1.DeploymentStatus)) appsv1.DeploymentStatus {
		s := appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: 4, UpdatedReplicas: 2, AvailableReplicas: 3, Conditions: []appsv1.DeploymentCondition{
			newCondition(appsv1.DeploymentAvailable, corev1.ConditionTrue, reasonAvailable, "a", noon),
			newCondition(appsv1.DeploymentProgressing, corev1.ConditionTrue, reasonUpdated, "p", noon),
		}}
		change(&s)
		return s
	}
	d := deploy(3)
	d.Status = on(func(*appsv1.DeploymentStatus) {})
	for name, tc := range map[string]struct {
		change func(*appsv1.DeploymentStatus)
		waits  bool
	}{
		"more is updated": {func(s *appsv1.DeploymentStatus) { s.UpdatedReplicas = 3 }, true},
		"fewer are there": {func(s *appsv1.DeploymentStatus) { s.Replicas = 3 }, true},
		"progress moves the time of its condition, and the condition to the end": {func(s *appsv1.DeploymentStatus) {
			s.UpdatedReplicas = 3
			s.Conditions[0], s.Conditions[1] = s.Conditions[1], s.Conditions[0]
			s.Conditions[0].LastUpdateTime = metav1.NewTime(noon.Add(time.Second))
		}, true},
		"all is updated":   {func(s *appsv1.DeploymentStatus) { s.Replicas, s.UpdatedReplicas, s.AvailableReplicas = 3, 3, 3 }, false},
		"a new generation": {func(s *appsv1.DeploymentStatus) { s.ObservedGeneration = 2 }, false},
		"a name was taken": {func(s *appsv1.DeploymentStatus) { s.CollisionCount = ptr.To[int32](1) }, false},
		"too few":          {func(s *appsv1.DeploymentStatus) { s.Conditions[0].Status = corev1.ConditionFalse }, false},
		"out of time":      {func(s *appsv1.DeploymentStatus) { s.Conditions[1].Reason = reasonTimedOut }, false},
		"another set":      {func(s *appsv1.DeploymentStatus) { s.Conditions[1].Message = "q" }, false},
		"a condition is added": {func(s *appsv1.DeploymentStatus) {
			s.Conditions = append(s.Conditions, appsv1.DeploymentCondition{Type: "X"})
		}, false},
		"one is lost in the rollout": {func(s *appsv1.DeploymentStatus) { s.AvailableReplicas = 2 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			after := on(tc.change)
			if got := underWay(d, &after); got != tc.waits {
				t.Errorf("can wait: %t", got)
			}
		})
	}
}

func TestALossOutsideOfARolloutDoesNotWait(t *testing.T) {
	numbers := func(all, updated, ready, available int32) appsv1.DeploymentStatus {
		return appsv1.DeploymentStatus{ObservedGeneration: 1, Replicas: all, UpdatedReplicas: updated, ReadyReplicas: ready, AvailableReplicas: available}
	}
	for name, tc := range map[string]struct {
		before, after appsv1.DeploymentStatus
		waits         bool
	}{
		"one is not available": {numbers(5, 5, 5, 5), numbers(5, 5, 5, 4), false},
		"one is not ready":     {numbers(5, 5, 5, 4), numbers(5, 5, 4, 4), false},
		"one is back":          {numbers(5, 5, 3, 3), numbers(5, 5, 4, 4), true},
		"an old one goes":      {numbers(6, 3, 6, 6), numbers(5, 3, 5, 5), true},
		"one of too many goes": {numbers(7, 7, 7, 7), numbers(6, 6, 6, 6), true},
	} {
		t.Run(name, func(t *testing.T) {
			d := deploy(5)
			d.Status = tc.before
			if got := underWay(d, &tc.after); got != tc.waits {
				t.Errorf("can wait: %t", got)
			}
		})
	}
}

func TestNumbersAreReportedWhenTheirTimeHasCome(t *testing.T) {
	d := deploy(3)
	d.Annotations = map[string]string{revisionAnnotation: "1"}
	rs := set(1, "v1", 3, 1)
	r := newRig(t, d, rs)
	r.Reconcile(t.Context(), web) // the first status, with its conditions
	first := r.stored(t)
	rs = set(1, "v1", 3, 2)
	r = newRig(t, first, rs)
	clock := r.Clock
	r.reports.Sent(web, clock.Now().Add(-10*time.Millisecond))
	if result := r.Reconcile(t.Context(), web); result.After() != 200*time.Millisecond || r.Requests() != "" {
		t.Fatalf("looks again after %v, did %q", result.After(), r.Requests())
	}
	clock.Step(200 * time.Millisecond)
	r.Reconcile(t.Context(), web)
	if got := r.stored(t).Status.AvailableReplicas; got != 2 {
		t.Errorf("reported %d available, did %q", got, r.Requests())
	}
}

// The next look at a Deployment that fails is put off ever longer, so nothing of it waits.
func TestNumbersOfADeploymentThatFailsDoNotWait(t *testing.T) {
	d := deploy(10, image("v2"), settled(10, reasonComplete), annotated(revisionAnnotation, "2"))
	*d.Spec.RevisionHistoryLimit = 0
	for name, tc := range map[string]struct {
		fails error
		did   string
		wait  time.Duration
	}{
		"history that stays": {denied, "delete replicasets, update deployments/status", 0},
		"history that goes":  {nil, "delete replicasets", time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			latest := set(2, "v2", 10, 10, sizedFor("10", "13"))
			latest.Status.Replicas = 11 // one more pod is there than is wanted
			r := newRig(t, d, set(1, "v1", 0, 0, sizedFor("10", "13")), latest)
			if tc.fails != nil {
				r.Fail("delete", "replicasets", tc.fails)
			}
			r.reports.Sent(web, noon.Add(-50*time.Millisecond))
			result := r.Reconcile(t.Context(), web)
			check(t, r.Requests(), tc.did)
			check(t, result.After(), tc.wait)
			check(t, errors.Is(result.Err(), tc.fails), true)
		})
	}
}
