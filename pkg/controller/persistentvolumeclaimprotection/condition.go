package persistentvolumeclaimprotection

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/protection"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// report keeps the condition of a claim that nobody deletes, and then its finalizer. The
// condition goes by the cache: a pod that it does not show yet wakes the claim again.
func report(claim *corev1.PersistentVolumeClaim, user string, now time.Time) act.Plan {
	want := condition(user, now)
	if i := slices.IndexFunc(claim.Status.Conditions, isUnused); i >= 0 && same(claim.Status.Conditions[i], want) {
		return protection.Plan(claim, Finalizer, "")
	}
	p := act.Plan{Why: "no pod refers to it", Stages: act.Stages(act.Status{Of: claim, Set: func(o client.Object) { set(o, want) }})}
	if user != "" {
		p.Why = "pod " + user + " refers to it"
	}
	if protection.Missing(claim, Finalizer) {
		p.Then = func(r act.Results) act.Plan {
			reported, is := r[len(r)-1].Object.(*corev1.PersistentVolumeClaim)
			if !is {
				return act.Plan{Why: "it is gone"}
			}
			return protection.Plan(reported, Finalizer, "")
		}
	}
	return p
}

// condition is what the claim should say.
func condition(user string, now time.Time) corev1.PersistentVolumeClaimCondition {
	c := corev1.PersistentVolumeClaimCondition{
		Type: corev1.PersistentVolumeClaimUnused, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now),
		Reason: "NoPodsUsingPVC", Message: "No pods are currently referencing this PVC",
	}
	if user != "" {
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "PodUsingPVC", "A pod is currently referencing this PVC"
	}
	return c
}

func isUnused(c corev1.PersistentVolumeClaimCondition) bool {
	return c.Type == corev1.PersistentVolumeClaimUnused
}

// same reports whether two conditions differ in time only.
func same(a, b corev1.PersistentVolumeClaimCondition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.Message == b.Message
}

// set puts the condition in the place of the one before it.
func set(o client.Object, c corev1.PersistentVolumeClaimCondition) {
	status := &o.(*corev1.PersistentVolumeClaim).Status
	if i := slices.IndexFunc(status.Conditions, isUnused); i >= 0 {
		status.Conditions[i] = c
		return
	}
	status.Conditions = append(status.Conditions, c)
}
