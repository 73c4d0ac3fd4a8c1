package reconcile

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// reader returns "not found" only if the API server itself has said so. Of a 404 of anything
// in front of it, client-go makes the same error.
type reader struct{ client.Reader }

// Get reads one object.
func (r reader) Get(ctx context.Context, key client.ObjectKey, into client.Object, opts ...client.GetOption) error {
	err := r.Reader.Get(ctx, key, into, opts...)
	if apierrors.IsNotFound(err) && !consistency.NotFound(err) {
		return fmt.Errorf("not found, but not by the API server: %s", err.Error())
	}
	return err
}

// Live reads an object past the caches; nil if there is none of the key.
func Live[T any, P interface {
	*T
	client.Object
}](ctx context.Context, from client.Reader, key client.ObjectKey) (*T, error) {
	live := P(new(T))
	if err := from.Get(ctx, key, live); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	return live, nil
}
