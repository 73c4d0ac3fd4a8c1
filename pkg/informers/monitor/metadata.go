package monitor

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
)

// slim keeps of an object that is held as metadata what says who it is, who
// owns it and what holds it: labels, annotations and managed fields may be
// larger than all of that.
func slim(object any) (any, error) {
	if o, ok := object.(*metav1.PartialObjectMetadata); ok {
		m := &o.ObjectMeta
		return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: m.Name, Namespace: m.Namespace, UID: m.UID, ResourceVersion: m.ResourceVersion,
			OwnerReferences: m.OwnerReferences, Finalizers: m.Finalizers,
			DeletionTimestamp: m.DeletionTimestamp, DeletionGracePeriodSeconds: m.DeletionGracePeriodSeconds,
		}}, nil
	}
	return object, nil
}

// heard is a metadata client of one resource that reports to health how its reads go.
type heard struct {
	metadata.Interface
	health *health
}

// Resource returns the reads of the resource; nothing is written through it.
func (h heard) Resource(gvr schema.GroupVersionResource) metadata.Getter {
	return heardGetter{h.Interface.Resource(gvr), h.health}
}

// IsWatchListSemanticsUnSupported is asked by the reflector: a client made for
// tests cannot stream a list.
func (h heard) IsWatchListSemanticsUnSupported() bool {
	u, ok := h.Interface.(interface{ IsWatchListSemanticsUnSupported() bool })
	return ok && u.IsWatchListSemanticsUnSupported()
}

type heardGetter struct {
	metadata.Getter
	health *health
}

func (g heardGetter) Namespace(namespace string) metadata.ResourceInterface {
	return heardReads{g.Getter.Namespace(namespace), g.health}
}

type heardReads struct {
	metadata.ResourceInterface
	health *health
}

func (r heardReads) List(ctx context.Context, o metav1.ListOptions) (*metav1.PartialObjectMetadataList, error) {
	list, err := r.ResourceInterface.List(ctx, o)
	switch {
	case err == nil && list.Continue == "":
		r.health.succeed()
	case err != nil && ctx.Err() == nil:
		r.health.fail(err)
	}
	return list, err
}

func (r heardReads) Watch(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
	w, err := r.ResourceInterface.Watch(ctx, o)
	switch {
	case err == nil && !ptr.Deref(o.SendInitialEvents, false):
		r.health.open() // one that lists first says nothing before the list is whole
	case err != nil && ctx.Err() == nil:
		r.health.fail(err)
	}
	return w, err
}

var byNamespace = cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
