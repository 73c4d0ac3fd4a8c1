package endpointslice

import (
	"context"
	"fmt"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	discoveryclient "k8s.io/client-go/kubernetes/typed/discovery/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
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

// Create creates the slice and records it. When the answer is lost the Service
// waits until a live look has shown whether there is a slice.
func (t trackedSlices) Create(ctx context.Context, slice *discoveryv1.EndpointSlice, o metav1.CreateOptions) (*discoveryv1.EndpointSlice, error) {
	key := t.keyOf(slice)
	created, err := t.EndpointSliceInterface.Create(t.c.contextOf(ctx, key), slice, o)
	if err != nil {
		if consistency.OutcomeUnknown(err) {
			ofService := labels.Set{discoveryv1.LabelServiceName: key.Name}
			t.c.writes.CreateLost(key, endpointSlices, t.ownerOf(slice), ofService.String())
		}
		return nil, err
	}
	t.c.writes.Wrote(key, endpointSlices, created)
	return created, nil
}

// ownerOf is the Service that controls a slice, as far as a live look needs it.
func (t trackedSlices) ownerOf(slice *discoveryv1.EndpointSlice) metav1.Object {
	owner := &metav1.ObjectMeta{Namespace: t.namespace}
	if ref := metav1.GetControllerOf(slice); ref != nil {
		owner.UID = ref.UID
	}
	return owner
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
