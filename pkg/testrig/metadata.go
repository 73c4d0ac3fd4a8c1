package testrig

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// WithMetadata returns a client that asks another fake about all objects of which only
// the metadata counts.
func WithMetadata(c client.Client, fake metadata.Interface) client.Client {
	return &metadataClient{c, fake}
}

type metadataClient struct {
	client.Client
	fake metadata.Interface
}

// of is where objects like this one are, which may be a list of them.
func (c *metadataClient) of(kind schema.GroupVersionKind, namespace string) (metadata.ResourceInterface, error) {
	m, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	return c.fake.Resource(m.Resource).Namespace(namespace), nil
}

// partly is the object as metadata, and where it is; nil if more of it counts.
func (c *metadataClient) partly(o client.Object, namespace string) (*metav1.PartialObjectMetadata, metadata.ResourceInterface, error) {
	partial, is := o.(*metav1.PartialObjectMetadata)
	if !is {
		return nil, nil, nil
	}
	resource, err := c.of(partial.GroupVersionKind(), namespace)
	return partial, resource, err
}

func (c *metadataClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	partial, resource, err := c.partly(o, key.Namespace)
	if partial == nil || err != nil {
		return c.Client.Get(ctx, key, o, opts...)
	}
	answer, err := resource.Get(ctx, key.Name, metav1.GetOptions{})
	return into(partial, answer, err)
}

func (c *metadataClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	partial, is := list.(*metav1.PartialObjectMetadataList)
	if !is {
		return c.Client.List(ctx, list, opts...)
	}
	var options client.ListOptions
	options.ApplyOptions(opts)
	kind := partial.GroupVersionKind()
	kind.Kind = kind.Kind[:len(kind.Kind)-len("List")]
	resource, err := c.of(kind, options.Namespace)
	if err != nil {
		return err
	}
	answer, err := resource.List(ctx, *options.AsListOptions())
	if err == nil {
		*partial = *answer
	}
	return err
}

func (c *metadataClient) Delete(ctx context.Context, o client.Object, opts ...client.DeleteOption) error {
	partial, resource, err := c.partly(o, o.GetNamespace())
	if partial == nil || err != nil {
		return c.Client.Delete(ctx, o, opts...)
	}
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	return resource.Delete(ctx, partial.Name, *options.AsDeleteOptions())
}

func (c *metadataClient) DeleteAllOf(ctx context.Context, o client.Object, opts ...client.DeleteAllOfOption) error {
	var options client.DeleteAllOfOptions
	options.ApplyOptions(opts)
	kind, err := apiutil.GVKForObject(o, c.Scheme())
	if err != nil {
		return err
	}
	resource, err := c.of(kind, options.ListOptions.Namespace)
	if err != nil {
		return err
	}
	return resource.DeleteCollection(ctx, *options.AsDeleteOptions(), *options.AsListOptions())
}

func (c *metadataClient) Patch(ctx context.Context, o client.Object, patch client.Patch, opts ...client.PatchOption) error {
	partial, resource, err := c.partly(o, o.GetNamespace())
	if partial == nil || err != nil {
		return c.Client.Patch(ctx, o, patch, opts...)
	}
	var options client.PatchOptions
	options.ApplyOptions(opts)
	data, err := patch.Data(o)
	if err != nil {
		return err
	}
	answer, err := resource.Patch(ctx, partial.Name, patch.Type(), data, *options.AsPatchOptions())
	return into(partial, answer, err)
}

// into puts an answer into the object that was asked about.
func into(o, answer *metav1.PartialObjectMetadata, err error) error {
	if err == nil && answer != nil {
		kind := o.GroupVersionKind()
		*o = *answer.DeepCopy()
		o.SetGroupVersionKind(kind)
	}
	return err
}
