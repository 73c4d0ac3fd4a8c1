package daemonset

import (
	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
)

// statusOf is what the set reports of these sums.
func statusOf(ds *appsv1.DaemonSet, t sums) appsv1.DaemonSetStatus {
	status := *ds.Status.DeepCopy()
	status.ObservedGeneration = ds.Generation
	status.DesiredNumberScheduled = int32(t.desired)
	status.CurrentNumberScheduled = int32(t.current)
	status.NumberMisscheduled = int32(t.misscheduled)
	status.NumberReady = int32(t.ready)
	status.UpdatedNumberScheduled = int32(t.updated)
	status.NumberAvailable = int32(t.available)
	status.NumberUnavailable = int32(t.desired - t.available)
	return status
}

// withStatus gives a set this status. Conditions of others and the number of collisions stay as
// they are there, which may be newer than the cache.
func withStatus(status appsv1.DaemonSetStatus) func(client.Object) {
	return func(object client.Object) {
		set := object.(*appsv1.DaemonSet)
		conditions, collisions := rejections.Update(set.Status.Conditions, backoffOf(&status), true, factsOf), set.Status.CollisionCount
		set.Status = status
		set.Status.Conditions, set.Status.CollisionCount = conditions, collisions
	}
}

// reported reports whether the API server has this status already. A generation that the set
// has not reached, as in a status that was restored, is mended when something else differs.
func reported(old, now appsv1.DaemonSetStatus) bool {
	now.ObservedGeneration = max(now.ObservedGeneration, old.ObservedGeneration)
	return apiequality.Semantic.DeepEqual(old, now)
}

// underWay reports whether the status is only a step towards pods on all nodes: more
// of them than were reported and not all yet, or fewer within the bounds of a
// rollout. Losses and the end are no steps, for others act on them.
func underWay(ds *appsv1.DaemonSet, now appsv1.DaemonSetStatus) bool {
	old := ds.Status
	if (backoffOf(&old) == nil) != (backoffOf(&now) == nil) {
		return false
	}
	if old.ObservedGeneration != now.ObservedGeneration || old.NumberMisscheduled != now.NumberMisscheduled ||
		now.DesiredNumberScheduled < old.DesiredNumberScheduled {
		return false
	}
	fewer := now.NumberReady < old.NumberReady || now.NumberAvailable < old.NumberAvailable || now.CurrentNumberScheduled < old.CurrentNumberScheduled
	if fewer && !allowed(ds, now) {
		return false
	}
	return now.NumberAvailable < now.DesiredNumberScheduled || now.UpdatedNumberScheduled < now.DesiredNumberScheduled && rolls(ds)
}

// allowed reports whether a rollout in progress may have so few working pods.
func allowed(ds *appsv1.DaemonSet, now appsv1.DaemonSetStatus) bool {
	if !rolls(ds) || now.UpdatedNumberScheduled >= now.DesiredNumberScheduled {
		return false
	}
	b, err := boundsOf(ds, int(now.DesiredNumberScheduled))
	return err == nil && int(now.NumberUnavailable) <= b.unavailable
}
