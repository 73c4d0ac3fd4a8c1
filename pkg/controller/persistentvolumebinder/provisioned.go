package persistentvolumebinder

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

const (
	provisioningFailed = "ProvisioningFailed"
	// tries is how often a volume is created whose backend is there, and how often that is
	// deleted when it cannot be; pauseBetween is the time between two tries.
	tries        = 5
	pauseBetween = 10 * time.Second
)

// errReported is a failure that has its event already.
var errReported = errors.New("the volume cannot be provisioned")

// provisionVolume has a plugin make the backend of a volume, and creates the volume.
func (c *Controller) provisionVolume(ctx context.Context, op operation) error {
	claim, err := reconcile.Cached[corev1.PersistentVolumeClaim](c.claimStore, op.Claim)
	if err != nil || claim.UID != op.UID || claim.Spec.VolumeName != "" {
		return nil // it needs no volume any more
	}
	o := observedClaim{claim: claim, plugins: c.plugins}
	if o.class, err = c.classes.Get(classOf(claim)); err != nil {
		return nil // the next look at the claim says so
	}
	plugin := provisioningOf(o).plugin
	if plugin == nil {
		return nil
	}
	refuse := func(why string) error { return c.refused(ctx, op, claim, plugin, why) }
	if why := cannotFill(claim, plugin); why != "" {
		return refuse(why)
	}
	if annotated, changed := provisionedBy(claim, plugin.Name); changed {
		if err := c.actor.Take(ctx, op, act.Update{Object: annotated, Required: true}).Err; err != nil {
			countError(plugin.Name, provisions)
			return err
		}
		claim = annotated
	}
	name := "pvc-" + string(claim.UID)
	switch err := c.live.Get(ctx, types.NamespacedName{Name: name}, &corev1.PersistentVolume{}); {
	case err == nil:
		return nil // an earlier try has made it
	case !apierrors.IsNotFound(err):
		countError(plugin.Name, provisions)
		return fmt.Errorf("read volume %s live: %w", name, err)
	}
	if why := cannotProvision(o.class, plugin); why != "" {
		return refuse(why)
	}
	if node, chosen := claim.Annotations[volumehelpers.AnnSelectedNode]; chosen {
		if _, err := c.nodes.Get(node); err != nil {
			return refuse(fmt.Sprintf("Failed to get target node: %v", err))
		}
	}
	made, err := plugin.Provision(ctx, claim)
	if err != nil {
		c.forgetNode(ctx, op, claim)
		return refuse(fmt.Sprintf("Failed to provision volume with StorageClass %q: %v", o.class.Name, err))
	}
	return c.create(ctx, op, claim, plugin, volumeFor(claim, o.class, plugin, made))
}

// refused reports why no volume is provisioned.
func (c *Controller) refused(ctx context.Context, op operation, claim *corev1.PersistentVolumeClaim, plugin *Plugin, message string) error {
	countError(plugin.Name, provisions)
	c.event(ctx, op, claim, corev1.EventTypeWarning, provisioningFailed, message)
	return fmt.Errorf("%w: %s", errReported, message)
}

func (c *Controller) event(ctx context.Context, op operation, claim *corev1.PersistentVolumeClaim, kind, reason, message string) {
	c.actor.Take(ctx, op, act.Event{On: claim, Type: kind, Reason: reason, Message: message})
}

// forgetNode has the scheduler choose again.
func (c *Controller) forgetNode(ctx context.Context, op operation, claim *corev1.PersistentVolumeClaim) {
	if !hasNode(claim) {
		return
	}
	claim = claim.DeepCopy()
	delete(claim.Annotations, volumehelpers.AnnSelectedNode)
	c.actor.Take(ctx, op, act.Update{Object: claim}) // what fails is tried again with the next failure
}

// create creates a volume whose backend is there. What cannot be created is deleted again.
func (c *Controller) create(ctx context.Context, op operation, claim *corev1.PersistentVolumeClaim, plugin *Plugin, pv *corev1.PersistentVolume) error {
	err := c.retry(ctx, func() error { return c.actor.Take(ctx, op, act.Create{Object: pv.DeepCopy(), MayExist: true}).Err })
	if err == nil {
		c.event(ctx, op, claim, corev1.EventTypeNormal, "ProvisioningSucceeded", fmt.Sprintf("Successfully provisioned volume %s using %s", pv.Name, plugin.Name))
		return nil
	}
	name := keyOf(claim).String()
	refused := c.refused(ctx, op, claim, plugin, fmt.Sprintf("Error creating provisioned PV object for claim %s: %v. Deleting the volume.", name, err))
	if plugin.Delete == nil {
		return refused
	}
	err = c.retry(ctx, func() error {
		switch err := c.live.Get(ctx, types.NamespacedName{Name: pv.Name}, &corev1.PersistentVolume{}); {
		case err == nil:
			return nil // it was created after all, and the answer was lost
		case !apierrors.IsNotFound(err):
			return fmt.Errorf("read the volume live before its backend is deleted: %w", err)
		}
		return plugin.Delete(ctx, pv)
	})
	if err != nil {
		c.event(ctx, op, claim, corev1.EventTypeWarning, "ProvisioningCleanupFailed", fmt.Sprintf("Error cleaning provisioned volume for claim %s: %v. Please delete manually.", name, err))
	}
	return refused
}

// retry tries five times, with a pause between two tries. One that was held back does not count.
func (c *Controller) retry(ctx context.Context, try func() error) error {
	err := try()
	for n := 1; err != nil; {
		if consistency.WasWithheld(err) == nil {
			n++
		}
		if n > tries {
			break
		}
		timer := c.clock.NewTimer(pauseBetween)
		select {
		case <-ctx.Done():
			timer.Stop()
			return errors.Join(err, ctx.Err())
		case <-timer.C():
		}
		err = try()
	}
	return err
}
