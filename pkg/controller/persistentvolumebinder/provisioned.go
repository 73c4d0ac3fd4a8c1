package persistentvolumebinder

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

const (
	provisioningFailed = "ProvisioningFailed"
	// tries is how often a volume is created whose backend is there, and how often that is
	// deleted when it cannot be; pauseBetween is the time between two tries.
	tries        = 5
	pauseBetween = 10 * time.Second
)

// errTold is a failure that has its event already.
var errTold = errors.New("the volume cannot be provisioned")

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
	refuse := func(format string, args ...any) error {
		return c.refused(ctx, op, claim, plugin, fmt.Sprintf(format, args...))
	}
	if claim.Spec.DataSource != nil || claim.Spec.DataSourceRef != nil {
		return refuse("plugin %q is not a CSI plugin. Only CSI plugin can provision a claim with a datasource", plugin.Name)
	}
	if annotated, changed := provisionedBy(claim, plugin.Name); changed {
		if err := c.actor.Take(ctx, op, act.Update{Object: annotated, Required: true}).Err; err != nil {
			countError(plugin.Name, provisions)
			return err
		}
		claim = annotated
	}
	request := Request{Name: "pvc-" + string(claim.UID), Claim: claim, Class: o.class}
	switch err := c.live.Get(ctx, types.NamespacedName{Name: request.Name}, &corev1.PersistentVolume{}); {
	case err == nil:
		return nil // an earlier try has made it
	case !absent(err):
		countError(plugin.Name, provisions)
		return fmt.Errorf("read volume %s live: %w", request.Name, err)
	case len(o.class.MountOptions) > 0:
		return refuse("Mount options are not supported by the provisioner but StorageClass %q has mount options %v", o.class.Name, o.class.MountOptions)
	case plugin.Disabled != "":
		return refuse("Failed to create provisioner: %s", plugin.Disabled)
	}
	if node, chosen := claim.Annotations[volumehelpers.AnnSelectedNode]; chosen {
		if request.Node, err = c.nodes.Get(node); err != nil {
			return refuse("Failed to get target node: %v", err)
		}
	}
	made, err := plugin.Provision(ctx, request)
	if err != nil {
		c.forgetNode(ctx, op, claim)
		return refuse("Failed to provision volume with StorageClass %q: %v", o.class.Name, err)
	}
	return c.create(ctx, op, claim, plugin, volumeFor(claim, o.class, plugin, made))
}

// refused tells why no volume is provisioned.
func (c *Controller) refused(ctx context.Context, op operation, claim *corev1.PersistentVolumeClaim, plugin *Plugin, message string) error {
	countError(plugin.Name, provisions)
	c.tell(ctx, op, claim, corev1.EventTypeWarning, provisioningFailed, message)
	return fmt.Errorf("%w: %s", errTold, message)
}

func (c *Controller) tell(ctx context.Context, op operation, claim *corev1.PersistentVolumeClaim, kind, reason, message string) {
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

// volumeFor returns the volume of a claim whose backend a plugin has made.
func volumeFor(claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass, plugin *Plugin, made *corev1.PersistentVolume) *corev1.PersistentVolume {
	pv := made.DeepCopy()
	pv.Name = "pvc-" + string(claim.UID)
	metav1.SetMetaDataAnnotation(&pv.ObjectMeta, volumehelpers.AnnBoundByController, yes)
	metav1.SetMetaDataAnnotation(&pv.ObjectMeta, volumehelpers.AnnDynamicallyProvisioned, plugin.Name)
	pv.Spec.ClaimRef = &corev1.ObjectReference{
		Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
	}
	pv.Spec.StorageClassName = classOf(claim)
	pv.Spec.PersistentVolumeReclaimPolicy = ptr.Deref(class.ReclaimPolicy, corev1.PersistentVolumeReclaimDelete)
	pv.Spec.Capacity = corev1.ResourceList{corev1.ResourceStorage: requested(claim)}
	pv.Spec.AccessModes = claim.Spec.AccessModes
	pv.Spec.VolumeMode = claim.Spec.VolumeMode
	pv.Status.Phase = corev1.VolumeBound // as the original sends it; the API server drops it
	if pv.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete {
		pv.Finalizers = append(pv.Finalizers, deletionProtection)
	}
	return pv
}

// create creates a volume whose backend is there. What cannot be created is deleted again.
func (c *Controller) create(ctx context.Context, op operation, claim *corev1.PersistentVolumeClaim, plugin *Plugin, pv *corev1.PersistentVolume) error {
	err := c.retry(ctx, func() error { return c.actor.Take(ctx, op, act.Create{Object: pv.DeepCopy(), MayExist: true}).Err })
	if err == nil {
		c.tell(ctx, op, claim, corev1.EventTypeNormal, "ProvisioningSucceeded", fmt.Sprintf("Successfully provisioned volume %s using %s", pv.Name, plugin.Name))
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
		case !absent(err):
			return fmt.Errorf("read the volume live before its backend is deleted: %w", err)
		}
		return plugin.Delete(ctx, pv)
	})
	if err != nil {
		c.tell(ctx, op, claim, corev1.EventTypeWarning, "ProvisioningCleanupFailed", fmt.Sprintf("Error cleaning provisioned volume for claim %s: %v. Please delete manually.", name, err))
	}
	return refused
}

// retry tries five times, with a pause between two tries.
func (c *Controller) retry(ctx context.Context, try func() error) error {
	err := try()
	for n := 1; n < tries && err != nil; n++ {
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
