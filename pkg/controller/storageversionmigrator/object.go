package storageversionmigrator

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// target is a resource as the API server serves it.
type target struct {
	gvr        schema.GroupVersionResource
	kind       string
	namespaced bool
	verbs      []string
}

// emptyPatch is a server-side apply without any field: the API server writes
// the object as it is, in the present storage version. It only works on the
// object that was listed, and cannot make a new one.
func emptyPatch(t target, object metav1.Object) configuration {
	return configuration{"kind": t.kind, "apiVersion": t.gvr.GroupVersion().String(),
		"metadata": map[string]any{"uid": object.GetUID(), "resourceVersion": object.GetResourceVersion()}}
}

// stored reports whether an object was written after the migration began, and so
// in the present storage version. Versions that cannot be ordered are migrated.
func stored(object metav1.Object, since string) bool {
	c, err := resourceversion.CompareResourceVersion(object.GetResourceVersion(), since)
	return err == nil && c > 0
}

// outcome is what an answer of the API server means for a migration.
type outcome int

const (
	migrated outcome = iota
	retry
	refused
)

// outcomeOf is what the answer to the patch of an object means. One that was changed,
// deleted or made again since it was listed is a conflict, and has been written since. Not
// found is the resource: by this API server, for a while, or by a proxy.
func outcomeOf(err error) outcome {
	var status apierrors.APIStatus
	switch {
	case err == nil, apierrors.IsConflict(err):
		return migrated
	case apierrors.IsNotFound(err):
		return retry
	case !errors.As(err, &status):
		return retry // the request did not get through
	case apierrors.IsTooManyRequests(err), apierrors.IsServerTimeout(err), apierrors.IsTimeout(err),
		apierrors.IsInternalError(err), apierrors.IsServiceUnavailable(err), apierrors.IsUnauthorized(err):
		return retry
	}
	if _, delay := apierrors.SuggestsClientDelay(err); delay {
		return retry
	}
	return refused
}
