package storageversiongc

import (
	"slices"
	"time"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	identityLabel = "apiserver.kubernetes.io/identity"
	apiServer     = "kube-apiserver"

	reasonSet, messageSet     = "CommonEncodingVersionSet", "Common encoding version set"
	reasonUnset, messageUnset = "CommonEncodingVersionUnset", "Common encoding version unset"
)

type (
	storageVersion = apiserverinternalv1alpha1.StorageVersion
	entry          = apiserverinternalv1alpha1.ServerStorageVersion
)

// plan says what to do with one StorageVersion; at most one of the two is set.
type plan struct {
	update, remove *storageVersion
	Gone           []string `json:"gone,omitempty"`
	Why            string   `json:"why"`
}

// decide takes the entries of the servers that are gone out of a StorageVersion.
func decide(sv *storageVersion, gone []string, now time.Time) plan {
	if sv == nil {
		return plan{Why: "the storage version is gone"}
	}
	left := slices.DeleteFunc(slices.Clone(sv.Status.StorageVersions), func(e entry) bool { return slices.Contains(gone, e.APIServerID) })
	switch {
	case len(left) == len(sv.Status.StorageVersions):
		return plan{Why: "all its servers are there"}
	case len(left) == 0:
		return plan{remove: sv, Gone: gone, Why: "none of its servers is there"}
	}
	changed := sv.DeepCopy()
	changed.Status.StorageVersions = left
	setCommonVersion(changed, now)
	return plan{update: changed, Gone: gone, Why: "some of its servers are gone"}
}

// setCommonVersion says whether all servers encode in the same version.
func setCommonVersion(sv *storageVersion, now time.Time) {
	before := sv.Status.CommonEncodingVersion
	common := sv.Status.StorageVersions[0].EncodingVersion
	agreed := !slices.ContainsFunc(sv.Status.StorageVersions, func(e entry) bool { return e.EncodingVersion != common })
	condition := apiserverinternalv1alpha1.StorageVersionCondition{
		Type: apiserverinternalv1alpha1.AllEncodingVersionsEqual, ObservedGeneration: sv.Generation, LastTransitionTime: metav1.NewTime(now),
		Status: apiserverinternalv1alpha1.ConditionFalse, Reason: reasonUnset, Message: messageUnset,
	}
	sv.Status.CommonEncodingVersion = nil
	if agreed {
		sv.Status.CommonEncodingVersion = &common
		condition.Status, condition.Reason, condition.Message = apiserverinternalv1alpha1.ConditionTrue, reasonSet, messageSet
	}
	// Another common version is a transition too, though both are True.
	moved := before != nil && agreed && *before != common
	for i, old := range sv.Status.Conditions {
		if old.Type != condition.Type {
			continue
		}
		if old.Status == condition.Status && !moved {
			condition.LastTransitionTime = old.LastTransitionTime
		}
		sv.Status.Conditions[i] = condition
		return
	}
	sv.Status.Conditions = append(sv.Status.Conditions, condition)
}

// servers are the IDs in a StorageVersion, each once.
func servers(sv *storageVersion) []string {
	if sv == nil {
		return nil
	}
	var ids []string
	for _, e := range sv.Status.StorageVersions {
		if !slices.Contains(ids, e.APIServerID) {
			ids = append(ids, e.APIServerID)
		}
	}
	return ids
}

// identifies tells whether a Lease is that of an API server.
func identifies(lease *coordinationv1.Lease) bool { return lease.Labels[identityLabel] == apiServer }
