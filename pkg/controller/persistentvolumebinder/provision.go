package persistentvolumebinder

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// provisioning is how a volume for a claim comes about.
type provisioning struct {
	// by is who provisions it, as the claim's annotations say.
	by string
	// plugin is the in-tree plugin that does; nil: somebody outside.
	plugin *Plugin
	// failed is why it cannot come about.
	failed string
}

// provisioningOf decides who provisions the volume of a claim.
func provisioningOf(o observedClaim) provisioning {
	if o.class == nil {
		return provisioning{failed: fmt.Sprintf("storageclass.storage.k8s.io %q not found", classOf(o.claim))}
	}
	name := o.class.Provisioner
	if driver := driverOf(name); driver != "" {
		return provisioning{by: driver}
	}
	switch plugin := o.plugins.Named(name); {
	case plugin != nil && plugin.Provision == nil:
		return provisioning{failed: "no provisionable volume plugin matched"}
	case plugin != nil:
		return provisioning{by: name, plugin: plugin}
	case strings.HasPrefix(name, inTreePrefix):
		return provisioning{failed: "no volume plugin matched name: " + name}
	}
	return provisioning{by: name}
}

// provision asks for a volume for a claim that matches none. The phase is not written.
func provision(o observedClaim) act.Plan {
	if !o.provisions {
		return done("no volume matches it, and none are provisioned")
	}
	how := provisioningOf(o)
	switch {
	case how.failed != "":
		return o.report(how.failed, corev1.EventTypeWarning, provisioningFailed, how.failed, func() act.Plan { return done(how.failed) })
	case how.plugin != nil:
		return started(provisionFor(o.claim), how.plugin.Name)
	}
	return external(o, how.by)
}

// provisionFor is the operation that has a volume provisioned for a claim.
func provisionFor(claim *corev1.PersistentVolumeClaim) operation {
	return operation{Kind: provisions, Claim: keyOf(claim), UID: claim.UID}
}

// external has somebody outside provision the volume: the annotations say who. If these
// cannot be written, the next look at the claim tries again, after a pause.
func external(o observedClaim, by string) act.Plan {
	if o.paused {
		return done(fmt.Sprintf("asking %s for a volume has failed a moment ago", by))
	}
	claim, changed := provisionedBy(o.claim, by)
	why := fmt.Sprintf("waiting for %s to provision a volume", by)
	asks := provisionFor(claim)
	begun := outcome{provisioning: by, asked: &asks}
	p := write[*corev1.PersistentVolumeClaim]{why: why, object: claim, changed: changed, note: begun, then: func(claim *corev1.PersistentVolumeClaim) act.Plan {
		o.claim = claim
		text := fmt.Sprintf("Waiting for a volume to be created either by the external provisioner '%s' or manually by the system administrator. "+
			"If volume creation is delayed, please verify that the provisioner is running and correctly registered.", by)
		return o.report(why, corev1.EventTypeNormal, "ExternalProvisioning", text, func() act.Plan {
			return act.Plan{Why: why, Note: func(act.Results) any { return begun }}
		})
	}}.plan()
	if changed {
		p.Else = func(results act.Results) act.Plan { return unsaved(o.claim, results) }
		p.Counts = func(results act.Results) []act.Count { return countUnsaved(by, results) }
	}
	return p
}

// unsaved reports that a claim does not say who provisions its volume.
func unsaved(claim *corev1.PersistentVolumeClaim, results act.Results) act.Plan {
	const why = "the claim does not say who provisions its volume"
	_, err := results.Failed()
	if err == nil {
		return done(why)
	}
	return act.Plan{
		Why: why, TerminalIf: func(error) bool { return true },
		Stages: act.Stages(act.Event{On: claim, Type: corev1.EventTypeWarning, Reason: provisioningFailed, Message: "Error saving claim: " + err.Error()}),
	}
}

// cannotFill returns why a plugin provisions no volume for a claim; empty if it may.
func cannotFill(claim *corev1.PersistentVolumeClaim, plugin *Plugin) string {
	if claim.Spec.DataSource == nil && claim.Spec.DataSourceRef == nil {
		return ""
	}
	return fmt.Sprintf("plugin %q is not a CSI plugin. Only CSI plugin can provision a claim with a datasource", plugin.Name)
}

// cannotProvision returns why a plugin provisions no volume of a class; empty if it may.
func cannotProvision(class *storagev1.StorageClass, plugin *Plugin) string {
	switch {
	case len(class.MountOptions) > 0:
		return fmt.Sprintf("Mount options are not supported by the provisioner but StorageClass %q has mount options %v", class.Name, class.MountOptions)
	case plugin.Disabled != "":
		return "Failed to create provisioner: " + plugin.Disabled
	}
	return ""
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

// provisionedBy returns the claim with the annotations that name its provisioner.
func provisionedBy(claim *corev1.PersistentVolumeClaim, by string) (*corev1.PersistentVolumeClaim, bool) {
	if claim.Annotations[volumehelpers.AnnStorageProvisioner] == by {
		return claim, false
	}
	claim = claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volumehelpers.AnnBetaStorageProvisioner, by)
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, volumehelpers.AnnStorageProvisioner, by)
	if annotations, changed := migratedTo(claim.Annotations, by); changed {
		claim.Annotations = annotations
	}
	return claim, true
}

// started asks for an operation that goes on beside the reconciles.
func started(op operation, plugin string) act.Plan {
	return act.Plan{Why: fmt.Sprintf("%s is up to the plugin %s", op, plugin), Note: func(act.Results) any { return outcome{start: &op, provisioning: plugin} }}
}
