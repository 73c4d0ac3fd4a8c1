package testrig

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/meta/testrestmapper"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	ktesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// mapper knows the built-in kinds, and the objects of any resource.
var mapper = act.Resources(testrestmapper.TestOnlyStaticRESTMapper(scheme.Scheme))

// Client writes to one of client-go's fakes, so that its reactors and its record of
// requests serve tests of what a controller writes.
func Client(fake Invoker) client.Client { return &fakeClient{fake: fake} }

// Invoker is the part of a fake that answers requests.
type Invoker interface {
	Invokes(action ktesting.Action, defaultReturnObj runtime.Object) (runtime.Object, error)
}

// fakeClient implements what the kit writes and reads live with; all else panics.
type fakeClient struct {
	client.Client
	fake Invoker
}

func (c *fakeClient) Scheme() *runtime.Scheme                          { return scheme.Scheme }
func (c *fakeClient) RESTMapper() meta.RESTMapper                      { return mapper }
func (c *fakeClient) Status() client.SubResourceWriter                 { return c.SubResource("status") }
func (c *fakeClient) SubResource(name string) client.SubResourceClient { return sub{c.fake, name} }
func (c *fakeClient) IsObjectNamespaced(o runtime.Object) (bool, error) {
	return apiutil.IsObjectNamespaced(o, scheme.Scheme, mapper)
}
func (c *fakeClient) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return apiutil.GVKForObject(o, scheme.Scheme)
}

func resourceOf(o runtime.Object) (schema.GroupVersionResource, error) {
	kind, err := apiutil.GVKForObject(o, scheme.Scheme)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	m, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return m.Resource, nil
}

// ask makes a request and puts the answer into the object.
func ask(fake Invoker, into client.Object, action func(schema.GroupVersionResource) ktesting.Action) error {
	resource, err := resourceOf(into)
	if err != nil {
		return err
	}
	kind := into.GetObjectKind().GroupVersionKind()
	answer, err := fake.Invokes(action(resource), reflect.New(reflect.TypeOf(into).Elem()).Interface().(runtime.Object))
	if err != nil || answer == nil || reflect.ValueOf(answer).IsNil() {
		return err
	}
	switch partial, is := into.(*metav1.PartialObjectMetadata); {
	case is:
		m, err := meta.Accessor(answer)
		if err != nil {
			return err
		}
		*partial = *meta.AsPartialObjectMetadata(m)
		partial.SetGroupVersionKind(kind)
	case reflect.TypeOf(answer) == reflect.TypeOf(into):
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(answer.DeepCopyObject()).Elem())
	default:
		return fmt.Errorf("the fake answers %T to a request about %T", answer, into)
	}
	return nil
}

func (c *fakeClient) Get(_ context.Context, key client.ObjectKey, o client.Object, _ ...client.GetOption) error {
	return ask(c.fake, o, func(r schema.GroupVersionResource) ktesting.Action {
		return ktesting.NewGetAction(r, key.Namespace, key.Name)
	})
}

// List lists typed objects, or the metadata of those whose kind the list has.
func (c *fakeClient) List(_ context.Context, list client.ObjectList, opts ...client.ListOption) error {
	var options client.ListOptions
	options.ApplyOptions(opts)
	kind, err := apiutil.GVKForObject(list, scheme.Scheme)
	if err != nil {
		return err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	m, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return err
	}
	action := ktesting.NewListActionWithOptions(m.Resource, kind, options.Namespace, *options.AsListOptions())
	answer, err := c.fake.Invokes(action, &metav1.List{})
	if err != nil {
		return err
	}
	_, partial := list.(*metav1.PartialObjectMetadataList)
	var items []runtime.Object
	err = meta.EachListItem(answer, func(item runtime.Object) error {
		object, err := meta.Accessor(item)
		if err != nil || !action.GetListRestrictions().Labels.Matches(labels.Set(object.GetLabels())) {
			return err
		}
		if partial {
			item = meta.AsPartialObjectMetadata(object)
			item.GetObjectKind().SetGroupVersionKind(kind)
		}
		items = append(items, item.DeepCopyObject())
		return nil
	})
	if err != nil {
		return err
	}
	if page, is := answer.(metav1.ListMetaAccessor); is {
		list.SetContinue(page.GetListMeta().GetContinue())
		list.SetResourceVersion(page.GetListMeta().GetResourceVersion())
	}
	return meta.SetList(list, items)
}

func (c *fakeClient) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	return ask(c.fake, o, func(r schema.GroupVersionResource) ktesting.Action {
		return ktesting.NewCreateAction(r, o.GetNamespace(), o.DeepCopyObject())
	})
}

func (c *fakeClient) Update(_ context.Context, o client.Object, _ ...client.UpdateOption) error {
	return sub{c.fake, ""}.Update(context.Background(), o)
}

func (c *fakeClient) Patch(_ context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	var options client.PatchOptions
	options.ApplyOptions(opts)
	return sub{c.fake, ""}.Patch(context.Background(), o, p, &client.SubResourcePatchOptions{PatchOptions: options})
}

func (c *fakeClient) Delete(_ context.Context, o client.Object, opts ...client.DeleteOption) error {
	var options client.DeleteOptions
	options.ApplyOptions(opts)
	resource, err := resourceOf(o)
	if err == nil {
		_, err = c.fake.Invokes(ktesting.NewDeleteActionWithOptions(resource, o.GetNamespace(), o.GetName(), *options.AsDeleteOptions()), nil)
	}
	return err
}

func (c *fakeClient) Apply(_ context.Context, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
	return sub{c.fake, ""}.apply(o)
}

// sub writes a subresource, or the object itself.
type sub struct {
	fake Invoker
	name string
}

func (s sub) Get(context.Context, client.Object, client.Object, ...client.SubResourceGetOption) error {
	panic("testrig: subresources are not read")
}

func (s sub) Create(_ context.Context, o, body client.Object, _ ...client.SubResourceCreateOption) error {
	resource, err := resourceOf(o)
	if err == nil {
		_, err = s.fake.Invokes(ktesting.NewCreateSubresourceAction(resource, o.GetName(), s.name, o.GetNamespace(), body), body)
	}
	return err
}

func (s sub) Update(_ context.Context, o client.Object, _ ...client.SubResourceUpdateOption) error {
	return ask(s.fake, o, func(r schema.GroupVersionResource) ktesting.Action {
		return ktesting.NewUpdateSubresourceAction(r, s.name, o.GetNamespace(), o.DeepCopyObject())
	})
}

func (s sub) Patch(_ context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	var options client.SubResourcePatchOptions
	options.ApplyOptions(opts)
	data, err := p.Data(o)
	if err != nil {
		return err
	}
	return ask(s.fake, o, func(r schema.GroupVersionResource) ktesting.Action {
		return ktesting.NewPatchSubresourceActionWithOptions(r, o.GetNamespace(), o.GetName(), p.Type(), data, *options.AsPatchOptions(), s.subresources()...)
	})
}

func (s sub) Apply(_ context.Context, o runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
	return s.apply(o)
}

func (s sub) apply(o runtime.ApplyConfiguration) error {
	data, err := json.Marshal(o)
	if err != nil {
		return err
	}
	object := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(data, object); err != nil {
		return err
	}
	resource, err := resourceOf(object)
	if err == nil {
		_, err = s.fake.Invokes(ktesting.NewPatchSubresourceAction(resource, object.Namespace, object.Name, types.ApplyPatchType, data, s.subresources()...), object)
	}
	return err
}

func (s sub) subresources() []string {
	if s.name == "" {
		return nil
	}
	return []string{s.name}
}
