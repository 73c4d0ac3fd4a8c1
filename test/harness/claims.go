package harness

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-helpers/storage/volume"

	"github.com/kube-kcm/kube-controller-manager/test/csi"
)

const selectedNodeAnnotation = "volume.kubernetes.io/selected-node"

// claimed reports whether the claims of a pod are bound, so that it can get its
// node. For a claim that waits for its first pod it does what a scheduler does:
// it gives it a volume, or names the node for the provisioner.
func (m *mounts) claimed(ctx context.Context, pod *corev1.Pod, nodeName string) (bool, error) {
	bound := true
	for i := range pod.Spec.Volumes {
		name := csi.ClaimOf(pod, &pod.Spec.Volumes[i])
		if name == "" {
			continue
		}
		claim, err := m.Claims.PersistentVolumeClaims(pod.Namespace).Get(name)
		if err != nil {
			// It is still to come.
			return false, nil
		}
		if claim.Status.Phase == corev1.ClaimBound {
			continue
		}
		bound = false
		if waits, err := volume.IsDelayBindingMode(claim, m.classes); err != nil || !waits || claim.Annotations[selectedNodeAnnotation] != "" {
			continue
		}
		if err := m.choose(ctx, claim, nodeName); err != nil {
			return false, err
		}
	}
	return bound, nil
}

// choose gives a claim a volume that is there for its node, or the node.
func (m *mounts) choose(ctx context.Context, claim *corev1.PersistentVolumeClaim, nodeName string) error {
	node, err := m.kubelet.nodes.Get(nodeName)
	if err != nil {
		return fmt.Errorf("get node %s: %w", nodeName, err)
	}
	all, err := m.Volumes.List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list volumes: %w", err)
	}
	found, err := volume.FindMatchingVolume(claim, all, node, nil, true, true)
	if err != nil {
		return fmt.Errorf("find a volume for claim %s: %w", claim.Name, err)
	}
	if found == nil {
		patch := fmt.Appendf(nil, `{"metadata":{"uid":%q,"annotations":{%q:%q}}}`, claim.UID, selectedNodeAnnotation, nodeName)
		_, err = m.kubelet.client.CoreV1().PersistentVolumeClaims(claim.Namespace).Patch(ctx, claim.Name, types.MergePatchType, patch, metav1.PatchOptions{})
	} else if found.Spec.ClaimRef == nil {
		var patch []byte
		patch, err = json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": found.ResourceVersion}, "spec": map[string]any{
			"claimRef": corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID}}})
		if err == nil {
			_, err = m.kubelet.client.CoreV1().PersistentVolumes().Patch(ctx, found.Name, types.MergePatchType, patch, metav1.PatchOptions{})
		}
	}
	if err != nil {
		return fmt.Errorf("choose for claim %s: %w", claim.Name, err)
	}
	return nil
}
