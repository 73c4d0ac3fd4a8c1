package act

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ofResource begins the kind of objects that are known by their resource only. No kind
// that is served begins so.
const ofResource = "resource:"

// InResource returns an object of a resource, whatever its kind is, for steps that need
// no more than its metadata. The client needs a mapper of [Resources].
func InResource(r schema.GroupVersionResource, namespace, name string) *metav1.PartialObjectMetadata {
	o := &metav1.PartialObjectMetadata{}
	o.SetGroupVersionKind(r.GroupVersion().WithKind(ofResource + r.Resource))
	o.Namespace, o.Name = namespace, name
	return o
}

// ListOf returns an empty list of a resource, whatever its kind is.
func ListOf(r schema.GroupVersionResource) *metav1.PartialObjectMetadataList {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(r.GroupVersion().WithKind(ofResource + r.Resource + "List"))
	return list
}

// ResourceOf returns the resource of an object of [InResource]; the empty one for any other.
func ResourceOf(o client.Object) schema.GroupVersionResource {
	if p, is := o.(*metav1.PartialObjectMetadata); is {
		kind := p.GroupVersionKind()
		if name, is := strings.CutPrefix(kind.Kind, ofResource); is {
			return kind.GroupVersion().WithResource(name)
		}
	}
	return schema.GroupVersionResource{}
}

// Resources returns a mapper that knows the objects of [InResource], and what another
// mapper knows.
func Resources(kinds meta.RESTMapper) meta.RESTMapper { return resources{kinds} }

type resources struct{ meta.RESTMapper }

func (m resources) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	name, is := strings.CutPrefix(kind.Kind, ofResource)
	switch {
	case !is:
		return m.RESTMapper.RESTMapping(kind, versions...)
	case len(versions) != 1:
		return nil, fmt.Errorf("act: an object of %s without a version", name)
	}
	version := schema.GroupVersion{Group: kind.Group, Version: versions[0]}
	// In no namespace, the scope of a namespace is the whole cluster.
	return &meta.RESTMapping{Resource: version.WithResource(name), GroupVersionKind: version.WithKind(kind.Kind), Scope: meta.RESTScopeNamespace}, nil
}

// KindOf is the name of the object's Go type, which is that of its kind; of metadata alone,
// that of the kind or of the resource.
func KindOf(o client.Object) string {
	switch o := o.(type) {
	case *unstructured.Unstructured:
		return o.GetKind()
	case *metav1.PartialObjectMetadata:
		if o.Kind != "" {
			return strings.TrimPrefix(o.Kind, ofResource)
		}
	}
	return reflect.TypeOf(o).Elem().Name()
}

// blank returns an empty object of the same type and name.
func blank(o client.Object) client.Object {
	empty := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object)
	if p, is := o.(*metav1.PartialObjectMetadata); is {
		empty.(*metav1.PartialObjectMetadata).TypeMeta = p.TypeMeta
	}
	empty.SetNamespace(o.GetNamespace())
	empty.SetName(o.GetName())
	return empty
}

// blankMetadata returns empty metadata of an object of the same kind and name.
func (h *hand) blankMetadata(of client.Object) (*metav1.PartialObjectMetadata, error) {
	kind, err := h.client.GroupVersionKindFor(of)
	if err != nil {
		return nil, err
	}
	empty := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: of.GetNamespace(), Name: of.GetName()}}
	empty.SetGroupVersionKind(kind)
	return empty, nil
}
