package endpointslice

import (
	"context"
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"
)

// trackedClient is the client the library writes with. It records each write
// for the Service it was made for, ends with that Service's context, and deletes
// a slice only if it is the one that was decided about.
type trackedClient struct {
	kubernetes.Interface
	c *Controller
}

// DiscoveryV1 returns the group with tracked slices.
func (t trackedClient) DiscoveryV1() discoveryclient.DiscoveryV1Interface {
	return trackedDiscovery{t.Interface.DiscoveryV1(), t.c}
}

type trackedDiscovery struct {
	discoveryclient.DiscoveryV1Interface
	c *Controller
}

// EndpointSlices returns the tracked slices of a namespace.
func (t trackedDiscovery) EndpointSlices(namespace string) discoveryclient.EndpointSliceInterface {
	return trackedSlices{t.DiscoveryV1Interface.EndpointSlices(namespace), namespace, t.c}
}

type trackedSlices struct {
	discoveryclient.EndpointSliceInterface
	namespace string
	c         *Controller
}

// Create creates the slice under a name of our own and records it. After a failure
// the name is used again: if only the answer was lost, the next create finds the
// slice there and makes no second one.
func (t trackedSlices) Create(ctx context.Context, slice *discoveryv1.EndpointSlice, o metav1.CreateOptions) (*discoveryv1.EndpointSlice, error) {
	key := t.keyOf(slice)
	ctx = t.c.contextOf(ctx, key)
	named, of := *slice, kind{key, slice.AddressType}
	named.Name = t.c.names.pick(of, slice.GenerateName, t.cached)
	created, err := t.EndpointSliceInterface.Create(ctx, &named, o)
	if apierrors.IsAlreadyExists(err) {
		created, err = t.createdBefore(ctx, key, &named)
	}
	if err != nil {
		return nil, err
	}
	t.c.names.drop(of)
	t.c.writes.Wrote(key, endpointSlices, created)
	return created, nil
}

// createdBefore returns the slice of that name if it is the one to create. If it
// is another of the same Service, the caches must show it before anything is decided.
func (t trackedSlices) createdBefore(ctx context.Context, key types.NamespacedName, wanted *discoveryv1.EndpointSlice) (*discoveryv1.EndpointSlice, error) {
	live, err := t.EndpointSliceInterface.Get(ctx, wanted.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("get endpoint slice %s/%s, which exists: %w", t.namespace, wanted.Name, err)
	}
	t.c.names.drop(kind{key, wanted.AddressType})
	if !metav1.IsControlledBy(live, controllerOf(wanted)) {
		return nil, fmt.Errorf("endpoint slice %s/%s exists and is somebody else's", t.namespace, wanted.Name)
	}
	if !sameContent(live, wanted) {
		t.c.writes.Wrote(key, endpointSlices, live)
		return nil, fmt.Errorf("endpoint slice %s/%s was created before, with other endpoints", t.namespace, wanted.Name)
	}
	return live, nil
}

// cached reports whether the cache shows a slice of that name.
func (t trackedSlices) cached(name string) bool {
	_, exists, err := t.c.slices.GetByKey(t.namespace + "/" + name)
	return err == nil && exists
}

// Update updates the slice and records it.
func (t trackedSlices) Update(ctx context.Context, slice *discoveryv1.EndpointSlice, o metav1.UpdateOptions) (*discoveryv1.EndpointSlice, error) {
	key := t.keyOf(slice)
	updated, err := t.EndpointSliceInterface.Update(t.c.contextOf(ctx, key), slice, o)
	if err != nil {
		return nil, err
	}
	t.c.writes.Wrote(key, endpointSlices, updated)
	return updated, nil
}

// Delete deletes the slice as it is cached and records it. A slice that is gone
// already is as good as deleted.
func (t trackedSlices) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	item, exists, err := t.c.slices.GetByKey(t.namespace + "/" + name)
	if err != nil {
		return fmt.Errorf("find endpoint slice %s/%s: %w", t.namespace, name, err)
	}
	slice, ok := item.(*discoveryv1.EndpointSlice)
	if !exists || !ok {
		return nil
	}
	key := t.keyOf(slice)
	o.Preconditions = metav1.NewUIDPreconditions(string(slice.UID))
	ctx = t.c.contextOf(ctx, key)
	_, err = t.c.writes.DeleteAnswered(ctx, key, endpointSlices, slice, t.EndpointSliceInterface.Delete(ctx, name, o))
	return err
}

func (t trackedSlices) keyOf(slice *discoveryv1.EndpointSlice) types.NamespacedName {
	return types.NamespacedName{Namespace: t.namespace, Name: serviceNameOf(slice)}
}

// contextOf returns the context of the sync that writes, and the given one outside of any.
func (c *Controller) contextOf(ctx context.Context, key types.NamespacedName) context.Context {
	if of, ok := c.contexts.Load(key); ok {
		if syncing, ok := of.(context.Context); ok {
			return syncing
		}
	}
	return ctx
}
