package persistentvolumeexpander

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// observed is a claim and its volume, which is nil when it does not count.
type observed struct {
	claim  *corev1.PersistentVolumeClaim
	volume *corev1.PersistentVolume
	// began is when the look began.
	began time.Time
}

// observe reads the volume live if something may be written that depends on it.
func (c *Controller) observe(ctx context.Context, k key) (observed, error) {
	o := observed{began: c.Clock().Now()}
	var err error
	if o.claim, err = reconcile.Cached[corev1.PersistentVolumeClaim](c.claims, k); err != nil || !bound(o.claim) {
		return o, err
	}
	o.volume, err = reconcile.Cached[corev1.PersistentVolume](c.volumes, o.claim.Spec.VolumeName)
	if err != nil {
		return o, nil // the claim is not absent
	}
	if !belongs(o.volume, o.claim) || !asksForMore(o.claim) && !annotated(o.volume) || !written(o.volume) {
		return o, nil
	}
	live := &corev1.PersistentVolume{}
	if err := c.live.Get(ctx, key{Name: o.volume.Name}, live); err != nil {
		return o, fmt.Errorf("read volume %s live: %w", o.volume.Name, err)
	}
	o.volume = live
	return o, nil
}
