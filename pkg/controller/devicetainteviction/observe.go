package devicetainteviction

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

var (
	// podsByDeviceClaim finds pods by the namespace/name of each ResourceClaim that they use.
	podsByDeviceClaim = cache.NewIndex("podsByDeviceClaim", func(object any) ([]string, error) {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return nil, nil
		}
		var claims []string
		for _, used := range claimsOf(pod) {
			claims = append(claims, pod.Namespace+"/"+used.name)
		}
		return claims, nil
	})
	// claimsByPool finds allocated claims by the driver/pool of each of their devices.
	claimsByPool = cache.NewIndex("claimsByDevicePool", func(object any) ([]string, error) {
		claim, ok := object.(*resourcev1.ResourceClaim)
		if !ok {
			return nil, nil
		}
		var pools []string
		for _, device := range allocated(claim) {
			pools = append(pools, poolOf(device.Driver, device.Pool))
		}
		return pools, nil
	})
	// slicesByPool finds slices by driver/pool.
	slicesByPool = cache.NewIndex("slicesByDevicePool", func(object any) ([]string, error) {
		if slice, ok := object.(*resourcev1.ResourceSlice); ok {
			return []string{poolOf(slice.Spec.Driver, slice.Spec.Pool.Name)}, nil
		}
		return nil, nil
	})
)

// poolOf names a pool. There is no slash in the name of a driver.
func poolOf(driver, pool string) string { return driver + "/" + pool }

// observed is what a plan for a pod is made from.
type observed struct {
	// pod is nil when it is gone.
	pod     *corev1.Pod
	devices []allocation
	booked  *appointment
}

func (c *Controller) observe(_ context.Context, k key) (observed, error) {
	o := observed{booked: c.memory.appointmentOf(k)}
	pod, err := reconcile.Cached[corev1.Pod](c.pods, k)
	switch {
	case err != nil && o.booked != nil:
		return o, nil
	case err != nil:
		return o, err
	}
	o.pod = pod
	for _, used := range claimsOf(pod) {
		claim, err := reconcile.Cached[resourcev1.ResourceClaim](c.claims, key{Namespace: pod.Namespace, Name: used.name})
		if err != nil || !holds(pod, claim, used.owned, c.podGroups) {
			continue
		}
		for _, device := range allocated(claim) {
			one, err := c.allocation(&device)
			if err != nil {
				return o, err
			}
			o.devices = append(o.devices, one)
		}
	}
	return o, nil
}

// allocation is a device that was allocated, with the NoExecute taints it has.
func (c *Controller) allocation(device *resourcev1.DeviceRequestAllocationResult) (allocation, error) {
	a := allocation{device: poolOf(device.Driver, device.Pool) + "/" + device.Device, tolerations: device.Tolerations}
	pool, err := cache.Lookup[resourcev1.ResourceSlice](c.slices, slicesByPool, poolOf(device.Driver, device.Pool))
	if err != nil {
		return a, err
	}
	a.taints = sliceTaints(pool, device.Device)
	if c.rules == nil {
		return a, nil
	}
	for _, item := range c.rules.List() {
		rule, ok := item.(*resourcev1beta2.DeviceTaintRule)
		if ok && rule.Spec.Taint.Effect == resourcev1beta2.DeviceTaintEffectNoExecute && selects(rule, device.Driver, device.Pool, device.Device) {
			a.taints = append(a.taints, ruleTaint(rule, resourcev1.DeviceTaintEffectNoExecute))
		}
	}
	return a, nil
}

// podsOf returns the pods that use the claim.
func (c *Controller) podsOf(claim *resourcev1.ResourceClaim) ([]*corev1.Pod, error) {
	return cache.Lookup[corev1.Pod](c.pods, podsByDeviceClaim, client.ObjectKeyFromObject(claim).String())
}
