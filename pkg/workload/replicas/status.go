package replicas

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// failure is what kept the plan from being carried out.
type failure struct {
	reason, message string
}

// failureOf says the first error of a create or a deletion, in the words of the API server.
func failureOf(r act.Results) *failure {
	switch step, err := r.Failed(); step.(type) {
	case act.Create:
		return &failure{pods.FailedCreate, err.Error()}
	case act.Delete:
		return &failure{pods.FailedDelete, "unable to delete pods: " + err.Error()} // as the original says it
	}
	return nil
}

// statusOf is what the set reports of its pods and of what failed. Terminating
// pods are reported only when they are counted.
func statusOf(o Observed, active []*corev1.Pod, failed *failure, now time.Time) appsv1.ReplicaSetStatus {
	template := labels.SelectorFromSet(o.Set.Template.Labels)
	status := appsv1.ReplicaSetStatus{
		Replicas:           int32(len(active)),
		ObservedGeneration: o.Set.Object.GetGeneration(),
		Conditions:         withFailure(o.Set.Status.Conditions, failed, now),
	}
	for _, pod := range active {
		if template.Matches(labels.Set(pod.Labels)) {
			status.FullyLabeledReplicas++
		}
		if pods.Ready(pod) {
			status.ReadyReplicas++
			if pods.Available(pod, o.Set.MinReadySeconds, now) {
				status.AvailableReplicas++
			}
		}
	}
	if o.CountTerminating {
		status.TerminatingReplicas = ptr.To(int32(len(o.Terminating)))
	}
	return status
}

// withFailure adds the condition ReplicaFailure when something failed and
// removes it when nothing did. One that is there stays as it is: it is about
// the first failure, and retries do not rewrite it.
func withFailure(conditions []appsv1.ReplicaSetCondition, failed *failure, now time.Time) []appsv1.ReplicaSetCondition {
	var others []appsv1.ReplicaSetCondition
	var there bool
	for _, c := range conditions {
		if c.Type == appsv1.ReplicaSetReplicaFailure {
			there = true
			continue
		}
		others = append(others, c)
	}
	switch {
	case (failed != nil) == there:
		return conditions
	case there:
		return others
	}
	return append(others, appsv1.ReplicaSetCondition{
		Type:               appsv1.ReplicaSetReplicaFailure,
		Status:             corev1.ConditionTrue,
		LastTransitionTime: metav1.NewTime(now),
		Reason:             failed.reason,
		Message:            failed.message,
	})
}

// put gives an object of the form this status. Conditions of others stay as they are
// there, which may be newer than the cache.
func put(form Form, status appsv1.ReplicaSetStatus) func(Object) {
	return func(object Object) {
		now := status
		now.Conditions = among(form.StatusOf(object).Conditions, status.Conditions)
		form.SetStatus(object, now)
	}
}

// among returns the conditions that are there with our own as they are to be.
func among(there, wanted []appsv1.ReplicaSetCondition) []appsv1.ReplicaSetCondition {
	var ours, all []appsv1.ReplicaSetCondition
	for _, c := range wanted {
		if own(c) {
			ours = append(ours, c)
		}
	}
	for _, c := range there {
		if !own(c) {
			all = append(all, c)
			continue
		}
		if at := slices.IndexFunc(ours, func(o appsv1.ReplicaSetCondition) bool { return o.Type == c.Type }); at >= 0 {
			all = append(all, ours[at])
			ours = slices.Delete(ours, at, at+1)
		}
	}
	return append(all, ours...)
}

// own reports whether the condition is one that these sets report themselves.
func own(c appsv1.ReplicaSetCondition) bool {
	return c.Type == appsv1.ReplicaSetReplicaFailure || c.Type == rejections.Condition
}

// reported reports whether the API server has this status already.
func reported(old, now appsv1.ReplicaSetStatus) bool {
	return apiequality.Semantic.DeepEqual(old, now)
}

// underWay reports whether the status is only a step towards the wanted number of
// pods: more of them than were reported, and not all yet, or fewer on their way
// out. Losses, failures and the end are no steps, for others act on them.
func underWay(set *Set, now appsv1.ReplicaSetStatus) bool {
	old := set.Status
	if !apiequality.Semantic.DeepEqual(old.Conditions, now.Conditions) ||
		now.Replicas < old.Replicas || now.ReadyReplicas < old.ReadyReplicas || now.AvailableReplicas < old.AvailableReplicas {
		return false
	}
	whole := int(now.Replicas) == set.Replicas && now.AvailableReplicas == now.Replicas
	was := old.Replicas == now.Replicas && old.AvailableReplicas == now.AvailableReplicas
	return !whole || was && old.ObservedGeneration == now.ObservedGeneration
}
