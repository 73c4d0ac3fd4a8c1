package quota

import (
	"cmp"
	"maps"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// deviceClaim measures the devices that may be allocated at most, under each of
// the names that a class has in quotas.
func (r Rules) deviceClaim(c *resourceapi.ResourceClaim, now time.Time) Usage {
	used := corev1.ResourceList{countName(DeviceClaims): one()}
	requested := r.requestedBy(c, now)
	for class, devices := range devicesByClass(c) {
		used[corev1.ResourceName(class+corev1.ResourceClaimsPerClass)] = number(devices)
		if r.IgnoreExtended {
			continue
		}
		names := []corev1.ResourceName{implicitDevices + corev1.ResourceName(class)}
		if offered := r.ExtendedResource(class); offered != "" {
			names = append(names, requestOf(offered))
		}
		for _, name := range names {
			sum := used[name]
			if sum.IsZero() {
				sum = number(0)
			}
			sum.Add(number(devices))
			used[name] = sum
		}
	}
	usage := Usage{Used: beyond(used, requested.Used)}
	if !requested.Until.IsZero() { // the pod no longer counts from then on
		usage.Until, usage.Then = requested.Until, beyond(used, requested.Then)
	}
	return usage
}

// requestedBy is what is counted already for the pod whose extended resources
// this claim was made for by the scheduler. A pod has one such claim. Anybody may
// write the annotation of one, so it is the claim that the status of the pod
// names; until the scheduler has written that, the first that was made.
func (r Rules) requestedBy(c *resourceapi.ResourceClaim, now time.Time) (requested Usage) {
	name, ok := ExtendedResourcePod(c)
	if !ok || r.IgnoreExtended {
		return requested
	}
	pod := r.Pod(c.Namespace, name)
	if pod == nil || !metav1.IsControlledBy(c, pod) {
		return requested
	}
	if s := pod.Status.ExtendedResourceClaimStatus; s != nil {
		ok = s.ResourceClaimName == c.Name
	} else {
		ok = first(c, r.MadeFor(pod)) == c
	}
	if !ok {
		return requested
	}
	return r.pod(pod, now)
}

// first is the oldest of the claims, by name among those of one second.
func first(oldest *resourceapi.ResourceClaim, claims []*resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	for _, c := range claims {
		if cmp.Or(c.CreationTimestamp.Time.Compare(oldest.CreationTimestamp.Time), cmp.Compare(c.Name, oldest.Name)) < 0 {
			oldest = c
		}
	}
	return oldest
}

// ExtendedResourcePod is the name of the pod that a claim says it was made for by
// the scheduler, because of the extended resources in its spec.
func ExtendedResourcePod(c *resourceapi.ResourceClaim) (string, bool) {
	owner := metav1.GetControllerOfNoCopy(c)
	if c.Annotations[resourceapi.ExtendedResourceClaimAnnotation] != "true" || owner == nil || owner.Kind != "Pod" {
		return "", false
	}
	return owner.Name, true
}

// devicesByClass are the most devices that the claim may get of each class. A count may be as
// large as can be, and their sum is no larger: the API server reads more as that.
func devicesByClass(c *resourceapi.ResourceClaim) map[string]int64 {
	devices := map[string]int64{}
	add := func(class string, n int64) { devices[class] += min(n, math.MaxInt64-devices[class]) }
	for i := range c.Spec.Devices.Requests {
		request := &c.Spec.Devices.Requests[i]
		if request.Exactly != nil {
			add(request.Exactly.DeviceClassName, atMost(request.Exactly.AllocationMode, request.Exactly.Count))
			continue
		}
		// Any of the alternatives may be taken, so each class counts with its largest.
		largest := map[string]int64{}
		for _, alternative := range request.FirstAvailable {
			class := alternative.DeviceClassName
			largest[class] = max(largest[class], atMost(alternative.AllocationMode, alternative.Count))
		}
		for class, n := range largest {
			add(class, n)
		}
	}
	return devices
}

// atMost is how many devices a request may get; a mode that is not known counts for nothing.
func atMost(mode resourceapi.DeviceAllocationMode, count int64) int64 {
	switch mode {
	case resourceapi.DeviceAllocationModeExactCount:
		return count
	case resourceapi.DeviceAllocationModeAll:
		return resourceapi.AllocationResultsMaxSize
	}
	return 0
}

// beyond is what is left of used without what is requested.
func beyond(used, requested corev1.ResourceList) corev1.ResourceList {
	left := maps.Clone(used)
	for name, q := range requested {
		if of, ok := used[name]; ok {
			left[name] = without(of, q)
		}
	}
	return left
}

// without is what is left of q, zero at least.
func without(q, less resource.Quantity) resource.Quantity {
	left := q.DeepCopy()
	left.Sub(less)
	if left.Sign() < 0 {
		return number(0)
	}
	return left
}
