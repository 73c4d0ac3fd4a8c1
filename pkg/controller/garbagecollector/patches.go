package garbagecollector

import (
	"encoding/json"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A patch carries the UID, so that it never meets another object of the same
// name, and where it replaces a whole list the version of that list.

type metaPatch struct {
	Metadata any `json:"metadata"`
}

type identityPatch struct {
	UID             types.UID `json:"uid"`
	ResourceVersion string    `json:"resourceVersion,omitempty"`
}

type ownersPatch struct {
	identityPatch
	OwnerReferences any `json:"ownerReferences"`
}

type finalizersPatch struct {
	identityPatch
	Finalizers []string `json:"finalizers"`
}

type dropped struct {
	Patch string    `json:"$patch"`
	UID   types.UID `json:"uid"`
}

func encode(metadata any) []byte {
	body, err := json.Marshal(metaPatch{metadata})
	if err != nil {
		panic(err) // strings and lists of them
	}
	return body
}

// withoutOwners is the strategic patch that takes owners off whatever others there are.
func withoutOwners(uid types.UID, drop []types.UID) []byte {
	list := make([]dropped, 0, len(drop))
	for _, o := range drop {
		list = append(list, dropped{"delete", o})
	}
	return encode(ownersPatch{identityPatch{UID: uid}, list})
}

// keepingOwners is the merge patch that takes owners off the object as it was
// read. It is for custom resources, which have no strategic patch.
func keepingOwners(live *metav1.PartialObjectMetadata, drop []types.UID) []byte {
	keep := slices.DeleteFunc(slices.Clone(live.OwnerReferences), func(ref metav1.OwnerReference) bool {
		return slices.Contains(drop, ref.UID)
	})
	return encode(ownersPatch{identityPatch{live.UID, live.ResourceVersion}, keep})
}

// unblocked is the merge patch after which the object holds up none of its owners.
func unblocked(live *metav1.PartialObjectMetadata) []byte {
	refs := slices.Clone(live.OwnerReferences)
	for i := range refs {
		if blocks(&refs[i]) {
			no := false
			refs[i].BlockOwnerDeletion = &no
		}
	}
	return encode(ownersPatch{identityPatch{live.UID, live.ResourceVersion}, refs})
}

// withoutFinalizer is the merge patch that takes a finalizer off the object as it was read.
func withoutFinalizer(live *metav1.PartialObjectMetadata, finalizer string) []byte {
	keep := slices.DeleteFunc(slices.Clone(live.Finalizers), func(f string) bool { return f == finalizer })
	return encode(finalizersPatch{identityPatch{live.UID, live.ResourceVersion}, keep})
}

// names tells whether the object names one of these owners.
func names(live *metav1.PartialObjectMetadata, uids []types.UID) bool {
	return slices.ContainsFunc(live.OwnerReferences, func(ref metav1.OwnerReference) bool { return slices.Contains(uids, ref.UID) })
}

// blocksAny tells whether the object holds up one of its owners.
func blocksAny(live *metav1.PartialObjectMetadata) bool {
	return slices.ContainsFunc(live.OwnerReferences, func(ref metav1.OwnerReference) bool { return blocks(&ref) })
}
