package statefulset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// statusOf is what the set reports of its pods.
func statusOf(o observed, now time.Time) appsv1.StatefulSetStatus {
	status := appsv1.StatefulSetStatus{
		ObservedGeneration: o.set.Generation,
		CurrentRevision:    o.current.name,
		UpdateRevision:     o.update.name,
		CollisionCount:     ptr.To(o.collisions),
		Conditions:         o.set.Status.Conditions,
	}
	for _, pod := range o.pods {
		if _, ok := ordinalIn(o.set, pod); !ok {
			continue
		}
		status.Replicas++
		if running(pod) {
			status.ReadyReplicas++
		}
		if available(pod, o.set.Spec.MinReadySeconds, now) {
			status.AvailableReplicas++
		}
		if terminating(pod) {
			continue
		}
		if revisionOf(pod) == o.current.name {
			status.CurrentReplicas++
		}
		if revisionOf(pod) == o.update.name {
			status.UpdatedReplicas++
		}
	}
	return status
}

// put gives a set this status. Conditions of others stay as they are there, which may
// be newer than the cache.
func put(status appsv1.StatefulSetStatus) func(client.Object) {
	return func(object client.Object) {
		set := object.(*appsv1.StatefulSet)
		conditions := rejections.Update(set.Status.Conditions, backoffOf(&status), true, factsOf)
		set.Status = status
		set.Status.Conditions = conditions
	}
}

// completed returns the status with the update declared done, once there are just
// the pods that the set asks for, at its revision and ready. Pods that are missing
// complete nothing: those below a partition would come back at the new revision.
func completed(set *appsv1.StatefulSet, status appsv1.StatefulSetStatus) appsv1.StatefulSetStatus {
	want := int32(wanted(set))
	if set.Spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType &&
		status.UpdatedReplicas == want && status.ReadyReplicas == want && status.Replicas == want {
		status.CurrentReplicas, status.CurrentRevision = status.UpdatedReplicas, status.UpdateRevision
	}
	return status
}

// reported reports whether the API server has this status already. A count of
// collisions alone is not worth a write.
func reported(old, now appsv1.StatefulSetStatus) bool {
	return old.ObservedGeneration >= now.ObservedGeneration &&
		old.CurrentRevision == now.CurrentRevision && old.UpdateRevision == now.UpdateRevision &&
		old.Replicas == now.Replicas && old.ReadyReplicas == now.ReadyReplicas && old.AvailableReplicas == now.AvailableReplicas &&
		old.CurrentReplicas == now.CurrentReplicas && old.UpdatedReplicas == now.UpdatedReplicas &&
		apiequality.Semantic.DeepEqual(backoffOf(&old), backoffOf(&now))
}

// underWay reports whether the status is only a step of a rollout or of a change of
// size: its numbers differ, no revision does, and it is not the end. A loss that
// is not part of such a change is no step, for others act on it.
func underWay(set *appsv1.StatefulSet, now appsv1.StatefulSetStatus) bool {
	old, want := set.Status, int32(wanted(set))
	if (backoffOf(&old) == nil) != (backoffOf(&now) == nil) {
		return false
	}
	if old.ObservedGeneration != now.ObservedGeneration || old.CurrentRevision != now.CurrentRevision || old.UpdateRevision != now.UpdateRevision {
		return false
	}
	if set.Spec.UpdateStrategy.RollingUpdate == nil && now.CurrentRevision != now.UpdateRevision && old.CurrentReplicas != now.CurrentReplicas {
		return false // without a partition it says which pods are made at the current revision: see bound
	}
	updated := now.CurrentRevision == now.UpdateRevision || set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType ||
		int(now.UpdatedReplicas) >= wanted(set)-partition(set)
	rolling, shrinking := !updated, old.Replicas > want
	if (now.ReadyReplicas < old.ReadyReplicas || now.AvailableReplicas < old.AvailableReplicas) && !rolling && !shrinking {
		return false
	}
	return now.Replicas != want || now.AvailableReplicas != want || !updated
}

// nextLook is how long until the next ready pod becomes available or the next
// rejected pod goes, which no event says; zero if none will.
func nextLook(o observed, now time.Time) time.Duration {
	return act.Soonest(o.held.wait(now), pods.NextAvailable(o.pods, o.set.Spec.MinReadySeconds, now))
}
