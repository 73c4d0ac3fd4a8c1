package persistentvolumebinder

import (
	"cmp"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	failedDelete  = "VolumeFailedDelete"
	failedRecycle = "VolumeFailedRecycle"
	noPolicy      = "VolumeUnknownReclaimPolicy"
)

// reclaiming is what becomes of a volume that its claim has left.
type reclaiming struct {
	// why is in a few words what is done.
	why string
	// start is the operation that does it, with plugin; nil: nothing is done here.
	start  *operation
	plugin *Plugin
	// by is the plugin that counts as the one that deletes it; only for the policy Delete.
	// With external it is what the class says, as drivers may call themselves anything.
	by       string
	external bool
	// recycles: its policy is to recycle it.
	recycles bool
	// failed says that it cannot be reclaimed.
	failed *failure
}

// reclaimingOf decides what becomes of a volume that its claim has left.
func reclaimingOf(pv *corev1.PersistentVolume, plugins Plugins) reclaiming {
	if driver := pv.Annotations[volumehelpers.AnnMigratedTo]; driver != "" {
		return reclaiming{why: "it is left to " + driver}
	}
	switch pv.Spec.PersistentVolumeReclaimPolicy {
	case corev1.PersistentVolumeReclaimRetain:
		return reclaiming{why: "it is retained"}
	case corev1.PersistentVolumeReclaimDelete:
		return deletionOf(pv, plugins)
	case corev1.PersistentVolumeReclaimRecycle:
		plugin := plugins.Of(pv)
		if plugin == nil || plugin.Recycle == nil {
			return reclaiming{recycles: true, failed: &failure{failedRecycle, "No recycler plugin found for the volume!"}}
		}
		return reclaiming{why: "it is recycled", recycles: true, plugin: plugin, start: &operation{Kind: recycles, Volume: pv.Name, UID: pv.UID}}
	}
	return reclaiming{failed: &failure{noPolicy, "Volume has unrecognized PersistentVolumeReclaimPolicy"}}
}

// deletionOf decides who deletes the backend of a volume: who has provisioned it, or
// whoever knows its source.
func deletionOf(pv *corev1.PersistentVolume, plugins Plugins) reclaiming {
	var plugin *Plugin
	none, deletesNothing := "", "no deletable volume plugin matched"
	switch by := pv.Annotations[volumehelpers.AnnDynamicallyProvisioned]; {
	case by != "":
		if plugin = plugins.Named(by); plugin == nil && !strings.HasPrefix(by, inTreePrefix) {
			return reclaiming{why: "it is left to " + by, external: true}
		}
		none = "no volume plugin matched name: " + by
	case pv.Spec.CSI != nil:
		return reclaiming{why: "it is left to " + pv.Spec.CSI.Driver, external: true}
	default:
		plugin = plugins.Of(pv)
		bySource := fmt.Sprintf("error getting deleter volume plugin for volume %q: ", pv.Name)
		none, deletesNothing = bySource+"no volume plugin matched", bySource+deletesNothing
	}
	switch {
	case plugin == nil:
		return reclaiming{by: unknownPlugin, failed: &failure{failedDelete, none}}
	case plugin.Delete == nil:
		return reclaiming{by: unknownPlugin, failed: &failure{failedDelete, deletesNothing}}
	}
	return reclaiming{why: "it is deleted", by: plugin.Name, plugin: plugin, start: &operation{Kind: deletes, Volume: pv.Name, UID: pv.UID}}
}

// reclaims returns the plugin that carries out an operation on a volume as it is now; nil
// if the volume is another one, is not released any more or has a policy for something else.
func reclaims(op operation, pv *corev1.PersistentVolume, plugins Plugins) *Plugin {
	if ref := pv.Spec.ClaimRef; pv.UID != op.UID || ref == nil || ref.UID == "" || !isReleased(pv) {
		return nil
	}
	if how := reclaimingOf(pv, plugins); how.start != nil && *how.start == op {
		return how.plugin
	}
	return nil
}

// mayHave reports whether a claim that is there has the volume, or may get it.
func mayHave(claim *corev1.PersistentVolumeClaim, pv *corev1.PersistentVolume) bool {
	return claim.Spec.VolumeName == "" || claim.Spec.VolumeName == pv.Name
}

// reclaim goes on with a volume that is Released or Failed.
func (o observedVolume) reclaim(why string) act.Plan {
	pv := o.volume
	how := reclaimingOf(pv, o.plugins)
	if how.external {
		how.by = o.provisioner()
	}
	switch {
	case o.unused && how.start != nil && how.start.Kind == recycles:
		return act.Plan{Why: "it was recycled", Stages: act.Stages(act.Event{On: pv, Type: corev1.EventTypeNormal, Reason: "VolumeRecycled", Message: "Volume recycled"}),
			Then: func(act.Results) act.Plan { return unbound(pv, "it was recycled") }}
	case o.failed != nil && how.start != nil:
		return failedPlan(pv, *o.failed, how)
	case how.recycles && len(o.users) > 0 && !o.cached:
		text := "Volume is used by pods: " + strings.Join(o.users, ",")
		return act.Plan{Why: text, Stages: act.Stages(act.Event{On: pv, Type: corev1.EventTypeNormal, Reason: failedRecycle, Message: text})}
	case how.failed != nil:
		return failedPlan(pv, *how.failed, how)
	}
	return act.Plan{Why: why + "; " + how.why, Note: func(act.Results) any { return outcome{start: how.start, deleting: how.by} }}
}

// failedPlan has a volume reported as Failed, once.
func failedPlan(pv *corev1.PersistentVolume, f failure, how reclaiming) act.Plan {
	on := pv.DeepCopy()
	events := []act.Event{{On: on, Type: corev1.EventTypeWarning, Reason: f.reason, Message: f.message}}
	return inPhase(pv, corev1.VolumeFailed, f.message, events, func(*corev1.PersistentVolume) act.Plan {
		return act.Plan{Why: f.message, Note: func(act.Results) any {
			return outcome{deleting: how.by, reported: true, impossible: how.failed != nil && !how.recycles}
		}}
	})
}

// provisioner is who provisions volumes of the class of the volume.
func (o observedVolume) provisioner() string {
	if o.class == nil {
		return unknownPlugin
	}
	return cmp.Or(driverOf(o.class.Provisioner), o.class.Provisioner)
}
