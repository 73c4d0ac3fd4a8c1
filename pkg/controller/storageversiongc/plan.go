package storageversiongc

import (
	"fmt"
	"slices"
	"strings"
	"time"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
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

// observed are StorageVersions and the servers that are gone.
type observed struct {
	versions []*storageVersion
	gone     []string
}

// plan takes the entries of the servers that are gone out of the StorageVersions.
func plan(o observed, now time.Time) act.Plan {
	var steps []act.Step
	for _, sv := range o.versions {
		if step := clean(sv, o.gone, now); step != nil {
			steps = append(steps, step)
		}
	}
	if len(steps) == 0 {
		return act.Plan{Why: "every entry belongs to an API server that exists"}
	}
	return act.Plan{
		Why:    fmt.Sprintf("%d storage versions name servers that are gone: %s", len(steps), strings.Join(o.gone, ", ")),
		Stages: []act.Stage{act.EachInTurn(steps...)},
	}
}

// clean writes a StorageVersion, in the version that was looked at: an API server may
// add itself at any moment.
func clean(sv *storageVersion, gone []string, now time.Time) act.Step {
	left := slices.DeleteFunc(slices.Clone(sv.Status.StorageVersions), func(e entry) bool { return slices.Contains(gone, e.APIServerID) })
	switch len(left) {
	case len(sv.Status.StorageVersions):
		return nil
	case 0:
		return act.Delete{Of: sv, Unchanged: true}
	}
	changed := sv.DeepCopy()
	changed.Status.StorageVersions = left
	setCommonVersion(changed, now)
	return act.Update{Object: changed, Subresource: "status"}
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

// identifies reports whether a Lease is that of an API server.
func identifies(lease *coordinationv1.Lease) bool { return lease.Labels[identityLabel] == apiServer }
