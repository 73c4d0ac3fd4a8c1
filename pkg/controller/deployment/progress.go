package deployment

import (
	"fmt"
	"math"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// noLimit in a field means that the field sets no limit.
const noLimit = math.MaxInt32

// deadline is how long a rollout may go without progress.
func deadline(d *appsv1.Deployment) (time.Duration, bool) {
	seconds := d.Spec.ProgressDeadlineSeconds
	if seconds == nil || *seconds == noLimit {
		return 0, false
	}
	return time.Duration(*seconds) * time.Second, true
}

// pauseCondition marks that the clock of the deadline stands still, or runs
// again. A rollout that is out of time stays so.
func pauseCondition(d *appsv1.Deployment, status *appsv1.DeploymentStatus, now time.Time) {
	if _, limited := deadline(d); !limited {
		return
	}
	c, paused := condition(status, appsv1.DeploymentProgressing), pausedBefore(status)
	switch {
	case c != nil && c.Reason == reasonTimedOut:
	case d.Spec.Paused && !paused:
		setCondition(status, newCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, reasonPaused, messagePaused, now))
	case !d.Spec.Paused && paused:
		setCondition(status, newCondition(appsv1.DeploymentProgressing, corev1.ConditionUnknown, reasonResumed, messageResumed, now))
	}
}

// pausedBefore reports whether the status says that the rollout is paused.
func pausedBefore(status *appsv1.DeploymentStatus) bool {
	c := condition(status, appsv1.DeploymentProgressing)
	return c != nil && c.Reason == reasonPaused
}

// progressCondition says in after how the rollout fares, measured by what
// changed from before. after carries the conditions so far.
func progressCondition(d *appsv1.Deployment, before, after *appsv1.DeploymentStatus, newSet *appsv1.ReplicaSet, now time.Time) {
	if _, limited := deadline(d); !limited {
		removeCondition(after, appsv1.DeploymentProgressing)
		return
	}
	c := condition(after, appsv1.DeploymentProgressing)
	if c != nil && c.Reason == reasonComplete && after.Replicas == after.UpdatedReplicas {
		return // a rollout that has ended does not begin again when pods come and go
	}
	is, reason, state := corev1.ConditionTrue, reasonUpdated, "is progressing."
	switch {
	case complete(d, after):
		reason, state = reasonComplete, "has successfully progressed."
	case progressed(before, after):
	case timedOut(d, c, now):
		is, reason, state = corev1.ConditionFalse, reasonTimedOut, "has timed out progressing."
	default:
		return
	}
	next := newCondition(appsv1.DeploymentProgressing, is, reason, subject(d, newSet)+" "+state, now)
	if reason == reasonUpdated {
		// Every step forward counts, so the update time has to move even if nothing else does.
		if c != nil && c.Status == next.Status {
			next.LastTransitionTime = c.LastTransitionTime
		}
		removeCondition(after, appsv1.DeploymentProgressing)
	}
	setCondition(after, next)
}

func subject(d *appsv1.Deployment, newSet *appsv1.ReplicaSet) string {
	if newSet == nil {
		return fmt.Sprintf("Deployment %q", d.Name)
	}
	return fmt.Sprintf("ReplicaSet %q", newSet.Name)
}

// complete reports whether all pods are of the new template, and available.
func complete(d *appsv1.Deployment, status *appsv1.DeploymentStatus) bool {
	return status.UpdatedReplicas == wanted(d) && status.Replicas == wanted(d) &&
		status.AvailableReplicas == wanted(d) && status.ObservedGeneration >= d.Generation
}

// progressed reports whether there are more new pods, fewer old ones, or more that work.
func progressed(before, after *appsv1.DeploymentStatus) bool {
	return after.UpdatedReplicas > before.UpdatedReplicas ||
		after.Replicas-after.UpdatedReplicas < before.Replicas-before.UpdatedReplicas ||
		after.ReadyReplicas > before.ReadyReplicas || after.AvailableReplicas > before.AvailableReplicas
}

// timedOut reports whether the last progress, which c is about, is too long ago.
func timedOut(d *appsv1.Deployment, c *appsv1.DeploymentCondition, now time.Time) bool {
	limit, limited := deadline(d)
	switch {
	case !limited, c == nil, c.Reason == reasonComplete:
		return false
	case c.Reason == reasonTimedOut:
		return true
	}
	return !now.Before(c.LastUpdateTime.Add(limit))
}

// untilDeadline is when to look whether the rollout is out of time; zero when it
// has ended or cannot run out of time.
func untilDeadline(d *appsv1.Deployment, status *appsv1.DeploymentStatus, now time.Time) time.Duration {
	limit, limited := deadline(d)
	c := condition(status, appsv1.DeploymentProgressing)
	if !limited || c == nil || c.Reason == reasonTimedOut || c.Reason == reasonComplete || complete(d, status) {
		return 0
	}
	return max(c.LastUpdateTime.Add(limit).Sub(now), time.Millisecond)
}
