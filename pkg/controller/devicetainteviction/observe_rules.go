package devicetainteviction

import (
	"context"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func (c *Controller) observeRule(_ context.Context, name string) (observedRule, error) {
	known, waiting := c.memory.reportOf(name)
	o := observedRule{woken: waiting}
	rule, err := reconcile.Cached[resourcev1beta2.DeviceTaintRule](c.rules, name)
	if err != nil {
		return o, nil
	}
	o.rule = rule
	o.fresh = known.uid != rule.UID || known.generation != rule.Generation
	if known.uid == rule.UID {
		o.evicted = known.evicted
	}
	if !o.fresh {
		o.woken = nil
	}
	dryRun := rule.Spec.Taint.Effect == resourcev1beta2.DeviceTaintEffectNone && !dryRunReported(rule)
	if dryRun {
		if o.published, err = c.published(rule); err != nil {
			return o, err
		}
	}
	if dryRun || rule.Spec.Taint.Effect == resourcev1beta2.DeviceTaintEffectNoExecute {
		err = c.selected(rule, &o)
	}
	return o, err
}

// published counts the devices that the newest slices have of those that a rule selects.
func (c *Controller) published(rule *resourcev1beta2.DeviceTaintRule) (int, error) {
	n := 0
	for _, name := range poolsOf(rule, cache.Values(c.slices, slicesByPool)) {
		pool, err := cache.Lookup[resourcev1.ResourceSlice](c.slices, slicesByPool, name)
		if err != nil {
			return 0, err
		}
		for _, slice := range newest(pool) {
			for i := range slice.Spec.Devices {
				if selects(rule, slice.Spec.Driver, slice.Spec.Pool.Name, slice.Spec.Devices[i].Name) {
					n++
				}
			}
		}
	}
	return n, nil
}

// selected finds the allocated devices that a rule selects, and the pods that use them.
func (c *Controller) selected(rule *resourcev1beta2.DeviceTaintRule, o *observedRule) error {
	effect := ruleTaint(rule, resourcev1.DeviceTaintEffectNoExecute).DeviceTaint
	going := map[key]bool{}
	for _, name := range poolsOf(rule, cache.Values(c.claims, claimsByPool)) {
		claims, err := cache.Lookup[resourcev1.ResourceClaim](c.claims, claimsByPool, name)
		if err != nil {
			return err
		}
		for _, claim := range claims {
			devices, tainted := 0, false
			for _, device := range allocated(claim) {
				if poolOf(device.Driver, device.Pool) == name && selects(rule, device.Driver, device.Pool, device.Device) {
					devices++
					tainted = tainted || tolerance(effect, device.Tolerations) != endless
				}
			}
			if devices == 0 {
				continue
			}
			o.allocated += devices
			pods, err := c.podsOf(claim)
			if err != nil {
				return err
			}
			for _, pod := range pods {
				k := client.ObjectKeyFromObject(pod)
				if o.fresh {
					o.woken = append(o.woken, k)
				}
				if tainted && !going[k] && c.staysWith(pod, claim) {
					going[k] = true
					o.pods = append(o.pods, k)
				}
			}
		}
	}
	return nil
}

// staysWith reports whether a pod uses a claim and is not on its way out.
func (c *Controller) staysWith(pod *corev1.Pod, claim *resourcev1.ResourceClaim) bool {
	if pod.DeletionTimestamp != nil || pod.Spec.NodeName == "" {
		return false
	}
	if booked := c.memory.appointmentOf(client.ObjectKeyFromObject(pod)); booked != nil && booked.uid == pod.UID && booked.evicted {
		return false
	}
	return slices.ContainsFunc(claimsOf(pod), func(u used) bool {
		return u.name == claim.Name && holds(pod, claim, u.owned, c.podGroups)
	})
}

// poolsOf returns those of the pools, as poolOf names them, that a rule may have devices in.
func poolsOf(rule *resourcev1beta2.DeviceTaintRule, pools []string) []string {
	s := rule.Spec.DeviceSelector
	if s == nil {
		return nil
	}
	var all []string
	for _, name := range pools {
		if driver, pool, _ := strings.Cut(name, "/"); fits(s.Driver, driver) && fits(s.Pool, pool) {
			all = append(all, name)
		}
	}
	return all
}
