package garbagecollector

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// location is where an object is served.
type location struct {
	resource        schema.GroupVersionResource
	namespace, name string
}

func (l location) String() string {
	return fmt.Sprintf("%s %s/%s", l.resource.GroupResource(), l.namespace, l.name)
}

var (
	// errAbsent: the API server serves the kind and has no such object.
	errAbsent = errors.New("not found")
	// errConflict: the object is not as the request expects it to be, or somebody
	// refuses it in these words.
	errConflict = errors.New("conflict")
	// errPatchKind: the kind does not know this form of patch.
	errPatchKind = errors.New("unsupported form of patch")
)

// api is what the collector asks of the API server. Errors wrap those above
// where these apply.
type api interface {
	// resolve finds the resource of a kind and whether it is namespaced.
	resolve(apiVersion, kind string) (schema.GroupVersionResource, bool, error)
	get(ctx context.Context, at location) (*metav1.PartialObjectMetadata, error)
	delete(ctx context.Context, at location, o metav1.DeleteOptions) error
	// patch returns the object as it is then.
	patch(ctx context.Context, at location, form types.PatchType, body []byte) (*metav1.PartialObjectMetadata, error)
}
