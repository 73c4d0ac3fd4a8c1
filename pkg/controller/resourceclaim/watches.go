package resourceclaim

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

func keyOf(kind kind, namespace, name string) key {
	return key{kind, types.NamespacedName{Namespace: namespace, Name: name}}
}

// podChanged wakes a pod that may lack a claim or a reservation, and the claims of one that
// does not use them any more.
func (c *Controller) podChanged(change runner.Change[corev1.Pod], wake runner.Wake[key]) {
	before, pod := change.Old, change.New
	if before != nil && (pod == nil || pod.UID != before.UID) {
		if uses(before) {
			c.deleted.Add(before.UID, nil)
			wakeClaims(before, wake)
		}
		before = nil
	}
	if pod == nil || !uses(pod) || before != nil && sameForClaims(before, pod) {
		return
	}
	switch {
	case done(pod):
		wakeClaims(pod, wake)
	case pod.DeletionTimestamp == nil && len(pod.Spec.ResourceClaims) > 0:
		wake.Add(keyOf(ofPod, pod.Namespace, pod.Name))
	}
}

// uses reports whether a pod has any claims.
func uses(pod *corev1.Pod) bool {
	return len(pod.Spec.ResourceClaims) > 0 || pod.Status.ExtendedResourceClaimStatus != nil
}

// sameForClaims reports whether a change of a pod says nothing to this controller. A resync
// says all again.
func sameForClaims(before, after *corev1.Pod) bool {
	return before.ResourceVersion != after.ResourceVersion && done(before) == done(after) &&
		before.Spec.NodeName == after.Spec.NodeName && (before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) &&
		resourceclaim.PodStatusEqual(before.Status.ResourceClaimStatuses, after.Status.ResourceClaimStatuses) &&
		resourceclaim.PodExtendedStatusEqual(before.Status.ExtendedResourceClaimStatus, after.Status.ExtendedResourceClaimStatus)
}

func wakeClaims(pod *corev1.Pod, wake runner.Wake[key]) {
	for _, name := range allClaimNames(pod) {
		wake.Add(keyOf(ofClaim, pod.Namespace, name))
	}
}

// claimChanged wakes a claim that may have something to give back, and the pods and PodGroups
// that are known to use it.
func (c *Controller) claimChanged(change runner.Change[resourceapi.ResourceClaim], wake runner.Wake[key]) {
	if claim := change.New; claim != nil && mayRelease(claim) {
		wake.Add(keyOf(ofClaim, claim.Namespace, claim.Name))
	}
	if change.Initial || change.Old != nil && change.New != nil && sameForOwners(change.Old, change.New) {
		return
	}
	claim := change.Now()
	wakePods(c.pods, podsByClaim, claim.Namespace+"/"+claim.Name, wake)
	if group := controllerOf(claim, groupKind.Kind); c.groups != nil && group != nil {
		wake.Add(keyOf(ofGroup, claim.Namespace, group.Name))
	}
}

// mayRelease reports whether there may be something to do about a claim by itself.
func mayRelease(claim *resourceapi.ResourceClaim) bool {
	return len(claim.Status.ReservedFor) > 0 || claim.DeletionTimestamp != nil || controllerOf(claim, podKind.Kind) != nil
}

// sameForOwners reports whether a change of a claim says nothing to those who use it.
func sameForOwners(before, after *resourceapi.ResourceClaim) bool {
	return before.ResourceVersion != after.ResourceVersion && before.UID == after.UID &&
		(before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) &&
		(before.Status.Allocation == nil) == (after.Status.Allocation == nil) &&
		apiequality.Semantic.DeepEqual(before.Status.ReservedFor, after.Status.ReservedFor) &&
		apiequality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences)
}

// controllerOf returns what controls the claim, if it is of that kind.
func controllerOf(claim *resourceapi.ResourceClaim, kind string) *metav1.OwnerReference {
	ref := metav1.GetControllerOfNoCopy(claim)
	switch {
	case ref == nil || ref.Kind != kind:
		return nil
	case kind == podKind.Kind && ref.APIVersion != podKind.Version:
		return nil
	}
	return ref
}

// templateChanged wakes the pods and PodGroups that wait for a template.
func (c *Controller) templateChanged(change runner.Change[resourceapi.ResourceClaimTemplate], wake runner.Wake[key]) {
	template := change.New
	if template == nil || change.Initial {
		return
	}
	name := template.Namespace + "/" + template.Name
	wakePods(c.pods, podsByTemplate, name, wake)
	if c.groups == nil {
		return
	}
	groups, err := cache.Lookup[schedulingv1alpha2.PodGroup](c.groups, groupsByTemplate, name)
	if err != nil {
		return // the index is there: New has asked for it
	}
	for _, group := range groups {
		wake.Add(keyOf(ofGroup, group.Namespace, group.Name))
	}
}

func wakePods(pods toolscache.Indexer, index cache.Index, value string, wake runner.Wake[key]) {
	users, err := cache.Lookup[corev1.Pod](pods, index, value)
	if err != nil {
		return // the index is there: New has asked for it
	}
	for _, pod := range users {
		if pod.DeletionTimestamp == nil && !done(pod) {
			wake.Add(keyOf(ofPod, pod.Namespace, pod.Name))
		}
	}
}

// groupChanged wakes a PodGroup and its pods, and the claims of one that is gone.
func (c *Controller) groupChanged(change runner.Change[schedulingv1alpha2.PodGroup], wake runner.Wake[key]) {
	if before := change.Old; before != nil && (change.New == nil || change.New.UID != before.UID) && len(before.Spec.ResourceClaims) > 0 {
		c.deleted.Add(before.UID, nil)
		for _, name := range ownerOfGroup(before).claimNames() {
			wake.Add(keyOf(ofClaim, before.Namespace, name))
		}
	}
	group := change.New
	if group == nil {
		return
	}
	if len(group.Spec.ResourceClaims) > 0 {
		wake.Add(keyOf(ofGroup, group.Namespace, group.Name))
	}
	if !change.Initial {
		wakePods(c.pods, podsWithClaimsByGroup, group.Namespace+"/"+group.Name, wake)
	}
}
