package deployment

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// counted returns the status of the Deployment with these sets, and in it the
// conditions given and whether the Deployment is available.
func counted(d *appsv1.Deployment, newSet *appsv1.ReplicaSet, sets []*appsv1.ReplicaSet, conditions []appsv1.DeploymentCondition, terminating bool, now time.Time) appsv1.DeploymentStatus {
	status := appsv1.DeploymentStatus{
		ObservedGeneration: d.Generation,
		Replicas:           sum(sets, func(set *appsv1.ReplicaSet) int32 { return set.Status.Replicas }),
		ReadyReplicas:      sum(sets, func(set *appsv1.ReplicaSet) int32 { return set.Status.ReadyReplicas }),
		AvailableReplicas:  sum(sets, func(set *appsv1.ReplicaSet) int32 { return set.Status.AvailableReplicas }),
		CollisionCount:     d.Status.CollisionCount,
		Conditions:         conditions,
	}
	if newSet != nil {
		status.UpdatedReplicas = newSet.Status.Replicas
	}
	// While scaling down there may be more available pods than wanted.
	status.UnavailableReplicas = max(sum(sets, size)-status.AvailableReplicas, 0)
	if terminating {
		status.TerminatingReplicas = terminatingIn(sets)
	}
	c := newCondition(appsv1.DeploymentAvailable, corev1.ConditionFalse, reasonUnavailable, messageUnavailable, now)
	if status.AvailableReplicas >= leastAvailable(d) {
		c = newCondition(appsv1.DeploymentAvailable, corev1.ConditionTrue, reasonAvailable, messageAvailable, now)
	}
	setCondition(&status, c)
	return status
}

// terminatingIn adds up the terminating pods. It is unknown when a set that has
// been observed does not report its own; one never observed has none.
func terminatingIn(sets []*appsv1.ReplicaSet) *int32 {
	var total int32
	for _, set := range sets {
		switch {
		case set.Status.TerminatingReplicas != nil:
			total += *set.Status.TerminatingReplicas
		case set.Status.ObservedGeneration > 0:
			return nil
		}
	}
	return ptr.To(total)
}

// failureCondition passes on what keeps a ReplicaSet from creating or deleting
// pods; the new set's trouble comes first.
func failureCondition(status *appsv1.DeploymentStatus, newSet *appsv1.ReplicaSet, sets []*appsv1.ReplicaSet) {
	if newSet != nil {
		sets = append([]*appsv1.ReplicaSet{newSet}, sets...)
	}
	for _, set := range sets {
		for _, c := range set.Status.Conditions {
			if c.Type == appsv1.ReplicaSetReplicaFailure {
				setCondition(status, appsv1.DeploymentCondition{
					Type: appsv1.DeploymentReplicaFailure, Status: c.Status, Reason: c.Reason, Message: c.Message,
					LastUpdateTime: c.LastTransitionTime, LastTransitionTime: c.LastTransitionTime,
				})
				return
			}
		}
	}
	removeCondition(status, appsv1.DeploymentReplicaFailure)
}

// createFailure is the message when the new ReplicaSet cannot be created.
func createFailure(name string, err any) string {
	return fmt.Sprintf("Failed to create new replica set %q: %v", name, err)
}

// afterCreateFailure returns the status with the failure in it; nothing else is
// known to have changed.
func afterCreateFailure(d *appsv1.Deployment, status appsv1.DeploymentStatus, message string, now time.Time) appsv1.DeploymentStatus {
	if _, limited := deadline(d); limited {
		status = *status.DeepCopy()
		setCondition(&status, newCondition(appsv1.DeploymentProgressing, corev1.ConditionFalse, reasonCreateError, message, now))
	}
	return status
}

// afterCollision returns the status that leads to another hash.
func afterCollision(status appsv1.DeploymentStatus) appsv1.DeploymentStatus {
	status.CollisionCount = ptr.To(ptr.Deref(status.CollisionCount, 0) + 1)
	return status
}

// underWay reports whether the status is only a step of a rollout: the numbers
// change, but no condition does, and it is not the end. A loss while no pod is to
// go is no step.
func underWay(d *appsv1.Deployment, after *appsv1.DeploymentStatus) bool {
	before := &d.Status
	settled := before.Replicas == before.UpdatedReplicas && after.Replicas == after.UpdatedReplicas && before.Replicas <= wanted(d)
	if settled && (after.ReadyReplicas < before.ReadyReplicas || after.AvailableReplicas < before.AvailableReplicas) {
		return false
	}
	return before.ObservedGeneration == after.ObservedGeneration &&
		ptr.Equal(before.CollisionCount, after.CollisionCount) &&
		slices.EqualFunc(byType(before.Conditions), byType(after.Conditions), says) &&
		!complete(d, after)
}

// says reports whether two conditions differ in nothing but their times.
func says(a, b appsv1.DeploymentCondition) bool {
	return a.Type == b.Type && a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// byType puts conditions in the order of their types: a change moves one to the end.
func byType(conditions []appsv1.DeploymentCondition) []appsv1.DeploymentCondition {
	return slices.SortedFunc(slices.Values(conditions), func(a, b appsv1.DeploymentCondition) int { return cmp.Compare(a.Type, b.Type) })
}
