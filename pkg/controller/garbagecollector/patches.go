package garbagecollector

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// A patch carries the UID, so that it never meets another object of the same
// name, and where it replaces a whole list the version of that list.

type identityPatch struct {
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
}

func identityOf(o metav1.Object) identityPatch {
	return identityPatch{o.GetUID(), o.GetResourceVersion()}
}

type ownersPatch struct {
	identityPatch
	OwnerReferences any `json:"ownerReferences"`
}

type finalizersPatch struct {
	identityPatch
	Finalizers []string `json:"finalizers"`
}

func encode(metadata any) []byte { return act.Body(map[string]any{"metadata": metadata}) }

// withoutOwners is the strategic patch that takes owners off whatever others there are.
func withoutOwners(uid types.UID, drop []types.UID) []byte {
	list := make([]map[string]any, 0, len(drop))
	for _, o := range drop {
		list = append(list, map[string]any{"$patch": "delete", "uid": o})
	}
	return encode(ownersPatch{identityPatch{UID: uid}, list})
}

// keepingOwners is the merge patch that takes owners off the object as it was
// read. It is for custom resources, which have no strategic patch.
func keepingOwners(live metav1.Object, drop []types.UID) []byte {
	keep := slices.DeleteFunc(slices.Clone(live.GetOwnerReferences()), func(ref metav1.OwnerReference) bool {
		return slices.Contains(drop, ref.UID)
	})
	return encode(ownersPatch{identityOf(live), keep})
}

// unblocked is the merge patch after which the object holds up none of its owners.
func unblocked(live metav1.Object) []byte {
	refs := slices.Clone(live.GetOwnerReferences())
	for i := range refs {
		if blocks(&refs[i]) {
			no := false
			refs[i].BlockOwnerDeletion = &no
		}
	}
	return encode(ownersPatch{identityOf(live), refs})
}

// withoutFinalizer is the merge patch that takes a finalizer off the object as it was read.
func withoutFinalizer(live metav1.Object, finalizer string) []byte {
	keep := slices.DeleteFunc(slices.Clone(live.GetFinalizers()), func(f string) bool { return f == finalizer })
	return encode(finalizersPatch{identityOf(live), keep})
}

// names reports whether the object names one of these owners.
func names(live metav1.Object, uids []types.UID) bool {
	return slices.ContainsFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return slices.Contains(uids, ref.UID) })
}

// blocksAny reports whether the object holds up one of its owners.
func blocksAny(live metav1.Object) bool {
	return slices.ContainsFunc(live.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return blocks(&ref) })
}
