package resourceclaim

import (
	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/dynamic-resource-allocation/resourceclaim"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
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
		if pods.UsesDevices(before) {
			c.deleted.Add(before.UID, nil)
			c.wakeClaims(before, wake)
		}
		before = nil
	}
	if pod == nil || !pods.UsesDevices(pod) || before != nil && sameForClaims(before, pod) {
		return
	}
	switch {
	case done(pod):
		c.wakeClaims(pod, wake)
	case c.needs(pod):
		wake.Add(keyOf(ofPod, pod.Namespace, pod.Name))
	}
}

// needs reports whether a pod may lack a claim, an entry or a reservation, as far as the
// caches show. Whichever of a pod and its claim is cached last asks with both in place.
func (c *Controller) needs(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil || done(pod) {
		return false
	}
	if c.groups != nil && groupOf(pod) != "" {
		return len(pod.Spec.ResourceClaims) > 0
	}
	for i := range pod.Spec.ResourceClaims {
		name, generated, err := resourceclaim.Name(pod, &pod.Spec.ResourceClaims[i])
		switch {
		case err != nil:
			return true
		case name == nil:
			continue
		}
		claim := cached[resourceapi.ResourceClaim](c.claims, pod.Namespace, *name)
		switch {
		case generated && (claim == nil || !ownerOfPod(pod).keeps(claim)):
			return true
		case generated && !metav1.IsControlledBy(claim, pod):
			continue
		case claim != nil && pod.Spec.NodeName != "" && claim.Status.Allocation != nil && claim.DeletionTimestamp == nil &&
			!resourceclaim.IsReservedForPod(pod, claim, c.groups != nil):
			return true
		}
	}
	return false
}

// sameForClaims reports whether a change of a pod says nothing to this controller. A resync
// says all again.
func sameForClaims(before, after *corev1.Pod) bool {
	return before.ResourceVersion != after.ResourceVersion && done(before) == done(after) &&
		before.Spec.NodeName == after.Spec.NodeName && (before.DeletionTimestamp == nil) == (after.DeletionTimestamp == nil) &&
		resourceclaim.PodStatusEqual(before.Status.ResourceClaimStatuses, after.Status.ResourceClaimStatuses) &&
		resourceclaim.PodExtendedStatusEqual(before.Status.ExtendedResourceClaimStatus, after.Status.ExtendedResourceClaimStatus)
}

// wakeClaims wakes the claims of a pod, also those that it controls and that no status names.
func (c *Controller) wakeClaims(pod *corev1.Pod, wake runner.Wake[key]) {
	names := sets.New(allClaimNames(pod)...)
	owned, err := cache.Controlled[resourceapi.ResourceClaim](c.claims, pod.Namespace, pod.UID)
	if err == nil { // the index is there: New has asked for it
		for _, claim := range owned {
			names.Insert(claim.Name)
		}
	}
	for name := range names {
		wake.Add(keyOf(ofClaim, pod.Namespace, name))
	}
}

// claimChanged wakes a claim that may have something to give back, and the pods and PodGroups
// that are known to use it.
func (c *Controller) claimChanged(change runner.Change[resourceapi.ResourceClaim], wake runner.Wake[key]) {
	if claim := change.New; claim != nil && c.mayRelease(claim) {
		wake.Add(keyOf(ofClaim, claim.Namespace, claim.Name))
	}
	if change.Old != nil && change.New != nil && sameForOwners(change.Old, change.New) {
		return
	}
	claim := change.Now()
	c.wakePods(podsByClaim, claim.Namespace+"/"+claim.Name, wake)
	if group := controllerOf(claim, groupKind.Kind); c.groups != nil && group != nil {
		wake.Add(keyOf(ofGroup, claim.Namespace, group.Name))
	}
}

// mayRelease reports whether there may be something to do about a claim by itself, as far as
// the caches show: a pod that is over later wakes its claims.
func (c *Controller) mayRelease(claim *resourceapi.ResourceClaim) bool {
	if claim.DeletionTimestamp != nil {
		return true
	}
	for _, ref := range claim.Status.ReservedFor {
		if kind, is := c.kindOf(ref); is && !c.inUse(kind, claim.Namespace, ref.Name, ref.UID) {
			return true
		}
	}
	ref := controllerOf(claim, podKind.Kind)
	return ref != nil && !c.inUse(podKind, claim.Namespace, ref.Name, ref.UID)
}

// inUse reports whether the cache shows that this very object is there, and is not over.
func (c *Controller) inUse(kind schema.GroupVersionKind, namespace, name string, uid types.UID) bool {
	object := c.cachedOf(kind, namespace, name)
	if object == nil || object.GetUID() != uid {
		return false
	}
	pod, is := object.(*corev1.Pod)
	return !is || !done(pod)
}

// sameForOwners reports whether a change of a claim says nothing to those who use it.
func sameForOwners(before, after *resourceapi.ResourceClaim) bool {
	return before.ResourceVersion != after.ResourceVersion && before.UID == after.UID &&
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
	c.wakePods(podsByTemplate, name, wake)
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

func (c *Controller) wakePods(index cache.Index, value string, wake runner.Wake[key]) {
	users, err := cache.Lookup[corev1.Pod](c.pods, index, value)
	if err != nil {
		return // the index is there: New has asked for it
	}
	for _, pod := range users {
		if c.needs(pod) {
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
		c.wakePods(podsWithClaimsByGroup, group.Namespace+"/"+group.Name, wake)
	}
}
