package garbagecollector

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
)

// live is the API server.
type live struct {
	metadata metadata.Interface
	mapper   meta.RESTMapper
}

func (l live) resolve(apiVersion, kind string) (schema.GroupVersionResource, bool, error) {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return schema.GroupVersionResource{}, false, err
	}
	mapping, err := l.mapper.RESTMapping(version.WithKind(kind).GroupKind(), version.Version)
	if err != nil {
		return schema.GroupVersionResource{}, false, fmt.Errorf("find the resource of %s %s: %w", apiVersion, kind, err)
	}
	return mapping.Resource, mapping.Scope.Name() == meta.RESTScopeNameNamespace, nil
}

func (l live) at(at location) metadata.ResourceInterface {
	return l.metadata.Resource(at.resource).Namespace(at.namespace)
}

func (l live) get(ctx context.Context, at location) (*metav1.PartialObjectMetadata, error) {
	// A name with a slash would ask for something else.
	if len(content.IsPathSegmentName(at.name)) > 0 {
		return nil, fmt.Errorf("get %s: %w", at, errAbsent)
	}
	object, err := l.at(at).Get(ctx, at.name, metav1.GetOptions{})
	return object, said("get", at, err)
}

func (l live) delete(ctx context.Context, at location, o metav1.DeleteOptions) error {
	return said("delete", at, l.at(at).Delete(ctx, at.name, o))
}

func (l live) patch(ctx context.Context, at location, form types.PatchType, body []byte) (*metav1.PartialObjectMetadata, error) {
	object, err := l.at(at).Patch(ctx, at.name, form, body, metav1.PatchOptions{})
	return object, said("patch", at, err)
}

// said wraps what the API server answered.
func said(verb string, at location, err error) error {
	switch {
	case err == nil:
		return nil
	case absent(at, err):
		err = errors.Join(errAbsent, err)
	case apierrors.IsConflict(err):
		err = errors.Join(errConflict, err)
	case apierrors.IsUnsupportedMediaType(err):
		err = errors.Join(errPatchKind, err)
	}
	return fmt.Errorf("%s %s: %w", verb, at, err)
}

// absent reports whether the answer says that there is no such object. A path
// that is not served is answered with "not found" too, and a proxy may answer
// so what it cannot pass on.
func absent(at location, err error) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || apierrors.IsUnexpectedServerError(err) || !errors.As(err, &status) {
		return false
	}
	about := status.Status().Details
	if about == nil || about.Name != at.name {
		return false
	}
	return about.Kind != namespaces || at.resource.Resource == namespaces
}

const namespaces = "namespaces"
