package persistentvolumeexpander

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes/operations"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// flexible records the new size of a FlexVolume. Nobody but its node expands it.
func flexible(o observed, now time.Time) act.Plan {
	if annotated(o.volume) && nodeIsDone(o.claim, o.volume) {
		done := act.Merge(o.volume, map[string]any{"annotations": map[string]any{PreResize: nil}})
		return act.Plan{Why: "the node has expanded the file system", Stages: act.Stages(done)}
	}
	e := expansion{volume: o.volume, old: *has(o.claim), began: o.began, now: now}
	whose, size := aim(o.claim, o.volume)
	e.size = size
	switch whose {
	case nodes:
		return e.last(act.Plan{Why: "the node has yet to expand the file system"})
	case nodesAgain:
		return e.handOver(o.claim)
	}
	return e.begin(o.claim)
}

// expansion is one of a volume to a size: some writes, each after the one before.
type expansion struct {
	volume     *corev1.PersistentVolume
	size, old  resource.Quantity
	began, now time.Time
}

// begin records in the claim what is to be done.
func (e expansion) begin(claim *corev1.PersistentVolumeClaim) act.Plan {
	patch, err := claimPatch(claim, began(claim, e.size, e.volume.Spec.FlexVolume.Driver, e.now), act.Events{FailedReason: resizeFailed,
		Failed: "error updating pvc " + about(claim) + " with resize in progress: " + patchFailed(claim)})
	if err != nil {
		return act.Plan{Err: err}
	}
	return e.counted(act.Plan{
		Why:    fmt.Sprintf("the claim has %s and asks for %s: recording that its volume becomes %s", has(claim), wants(claim), &e.size),
		Stages: stages(patch),
		Then:   func(results act.Results) act.Plan { return e.grow(claimIn(results, claim)) },
	})
}

// grow records the size in the volume.
func (e expansion) grow(claim *corev1.PersistentVolumeClaim) act.Plan {
	p := act.Plan{
		Why: fmt.Sprintf("recording the size %s in the volume", &e.size),
		Then: func(results act.Results) act.Plan {
			if mode := e.volume.Spec.VolumeMode; mode != nil && *mode == corev1.PersistentVolumeBlock {
				return e.end(claim)
			}
			return e.handOver(claim)
		},
	}
	if offers(e.volume).Cmp(e.size) != 0 {
		p.Stages = act.Stages(e.volumePatch(claim, map[string]any{"spec": map[string]any{"capacity": map[string]any{"storage": e.size.String()}}},
			"error updating pv for pvc "+about(claim)+": "))
	}
	return e.counted(p)
}

// handOver leaves the file system to the node.
func (e expansion) handOver(claim *corev1.PersistentVolumeClaim) act.Plan {
	failed := "error marking pvc " + about(claim) + " for node expansion: "
	patch, err := claimPatch(claim, waitsForNode(claim, e.now), act.Events{FailedReason: resizeFailed, Failed: failed + failed + patchFailed(claim)})
	if err != nil {
		return act.Plan{Err: err}
	}
	p := act.Plan{Why: fmt.Sprintf("the node is to expand the file system from %s", &e.old), Stages: stages(patch)}
	if !annotated(e.volume) {
		p.Stages = append(p.Stages, act.InTurn(e.volumePatch(claim, map[string]any{"metadata": map[string]any{"annotations": map[string]any{PreResize: e.old.String()}}},
			fmt.Sprintf("%serror updating pv %s annotation (%s) with pre-resize capacity %s: ", failed, e.volume.Name, PreResize, &e.old))))
	}
	return e.last(p)
}

// end is for a block device, which has no file system.
func (e expansion) end(claim *corev1.PersistentVolumeClaim) act.Plan {
	patch, err := claimPatch(claim, ended(claim, e.size), act.Events{
		DoneReason: resized, Done: "ExpandVolume succeeded for volume " + about(claim),
		FailedReason: resizeFailed, Failed: "error marking pvc " + about(claim) + " as resized: " + patchFailed(claim),
	})
	if err != nil {
		return act.Plan{Err: err}
	}
	return e.last(act.Plan{Why: fmt.Sprintf("the block device has %s", &e.size), Stages: stages(patch)})
}

// volumePatch changes the volume; nothing goes on before that.
func (e expansion) volumePatch(claim *corev1.PersistentVolumeClaim, changes map[string]any, failed string) act.Patch {
	metadata, _ := changes["metadata"].(map[string]any)
	changes["metadata"] = with(metadata, "uid", any(e.volume.UID))
	return act.Patch{Of: e.volume, Type: types.StrategicMergePatchType, Data: act.Body(changes), Required: true,
		Events: act.Events{On: claim, FailedReason: resizeFailed, Failed: failed + fmt.Sprintf("error Patching PV %q with error : %%v", e.volume.Name)}}
}

// stages has one step, or none.
func stages(patch *act.Patch) []act.Stage {
	if patch == nil {
		return nil
	}
	patch.Required = true // what comes next depends on it
	return act.Stages(*patch)
}

// claimIn is the claim as the API server returned it; as it was, if it was not written.
func claimIn(results act.Results, before *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	claim := before
	for _, patched := range act.Succeeded[act.Patch](results) {
		if now, is := patched.Object.(*corev1.PersistentVolumeClaim); is {
			claim = now
		}
	}
	return claim
}

// counted has the expansion measured if it fails in this plan.
func (e expansion) counted(p act.Plan) act.Plan {
	p.Counts = func(results act.Results) []act.Count {
		if _, err := results.Failed(); err != nil {
			return []act.Count{e.operation().Ended(e.began, err)}
		}
		return nil
	}
	return p
}

// last has it measured in any case.
func (e expansion) last(p act.Plan) act.Plan {
	p.Counts = func(results act.Results) []act.Count {
		_, err := results.Failed()
		return []act.Count{e.operation().Ended(e.began, err)}
	}
	return p
}

func (e expansion) operation() operations.Operation {
	return operations.Operation{Name: "expand_volume", Plugin: e.volume.Spec.FlexVolume.Driver}
}
