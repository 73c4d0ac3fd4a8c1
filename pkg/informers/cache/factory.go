package cache

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/informers/admissionregistration"
	"k8s.io/client-go/informers/apiserverinternal"
	"k8s.io/client-go/informers/apps"
	"k8s.io/client-go/informers/autoscaling"
	"k8s.io/client-go/informers/batch"
	"k8s.io/client-go/informers/certificates"
	"k8s.io/client-go/informers/coordination"
	"k8s.io/client-go/informers/core"
	"k8s.io/client-go/informers/discovery"
	"k8s.io/client-go/informers/events"
	"k8s.io/client-go/informers/extensions"
	"k8s.io/client-go/informers/flowcontrol"
	"k8s.io/client-go/informers/internalinterfaces"
	"k8s.io/client-go/informers/networking"
	"k8s.io/client-go/informers/node"
	"k8s.io/client-go/informers/policy"
	"k8s.io/client-go/informers/rbac"
	"k8s.io/client-go/informers/resource"
	"k8s.io/client-go/informers/scheduling"
	"k8s.io/client-go/informers/storage"
	"k8s.io/client-go/informers/storagemigration"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	toolscache "k8s.io/client-go/tools/cache"
)

// Factory makes informers and keeps a record of those that somebody asked for. The
// library's factory keeps it to itself, so all that asks for an informer is here.
type Factory struct {
	informers.SharedInformerFactory

	namespace string
	some      internalinterfaces.TweakListOptionsFunc

	mu    sync.Mutex
	asked map[schema.GroupVersionKind]toolscache.SharedIndexInformer
}

// NewFactory returns what makes informers of all objects, with these options for the rest.
func NewFactory(client kubernetes.Interface, resync time.Duration, options ...informers.SharedInformerOption) *Factory {
	return newFactory(client, resync, metav1.NamespaceAll, nil, options...)
}

func newFactory(client kubernetes.Interface, resync time.Duration, namespace string, some internalinterfaces.TweakListOptionsFunc, options ...informers.SharedInformerOption) *Factory {
	latest := func(o *metav1.ListOptions) {
		if Latest(o); some != nil {
			some(o)
		}
	}
	options = append(options, informers.WithNamespace(namespace), informers.WithTweakListOptions(latest))
	return &Factory{
		SharedInformerFactory: informers.NewSharedInformerFactoryWithOptions(client, resync, options...),
		namespace:             namespace, some: latest, asked: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{},
	}
}

// Latest makes a list return the latest state. A cache that begins with a list asks for any
// state that the API server has cached, which may lack what the leader before has written.
// Such a list comes whole, whatever limit it names; so does this one.
func Latest(o *metav1.ListOptions) {
	if o.ResourceVersion == "0" {
		o.ResourceVersion, o.Limit = "", 0
	}
}

// Asked returns the informers that somebody has asked for until now.
func (f *Factory) Asked() []toolscache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.asked))
}

// AskedKinds is Asked by the kind of the objects.
func (f *Factory) AskedKinds() map[schema.GroupKind]toolscache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	kinds := make(map[schema.GroupKind]toolscache.SharedIndexInformer, len(f.asked))
	for kind, informer := range f.asked {
		kinds[kind.GroupKind()] = informer
	}
	return kinds
}

// note records that somebody has asked for this informer, and returns it as all share it.
func (f *Factory) note(kind schema.GroupVersionKind, informer toolscache.SharedIndexInformer) toolscache.SharedIndexInformer {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked[kind] == nil {
		f.asked[kind] = &shared{SharedIndexInformer: informer}
	}
	return f.asked[kind]
}

// InformerFor returns the informer of the objects like this one; all are made here, but
// for those of ForResource.
func (f *Factory) InformerFor(object runtime.Object, make internalinterfaces.NewInformerFunc) toolscache.SharedIndexInformer {
	informer := f.SharedInformerFactory.InformerFor(object, make)
	if kinds, _, err := scheme.Scheme.ObjectKinds(object); err == nil {
		return f.note(kinds[0], informer)
	}
	return informer
}

// ForResource returns the informer of a resource.
func (f *Factory) ForResource(r schema.GroupVersionResource) (informers.GenericInformer, error) {
	informer, err := f.SharedInformerFactory.ForResource(r)
	if err != nil {
		return nil, err
	}
	for name := range scheme.Scheme.KnownTypes(r.GroupVersion()) {
		kind := r.GroupVersion().WithKind(name)
		if plural, _ := meta.UnsafeGuessKindToResource(kind); plural == r {
			return ofResource{informer, f.note(kind, informer.Informer())}, nil
		}
	}
	return informer, nil
}

// ofResource is the informer of a resource as all share it.
type ofResource struct {
	informers.GenericInformer
	shared toolscache.SharedIndexInformer
}

func (r ofResource) Informer() toolscache.SharedIndexInformer { return r.shared }

// The groups, each with the informers of its resources. All are made by f, which notes them.

func (f *Factory) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(f, f.namespace, f.some)
}
func (f *Factory) Internal() apiserverinternal.Interface {
	return apiserverinternal.New(f, f.namespace, f.some)
}
func (f *Factory) Apps() apps.Interface               { return apps.New(f, f.namespace, f.some) }
func (f *Factory) Autoscaling() autoscaling.Interface { return autoscaling.New(f, f.namespace, f.some) }
func (f *Factory) Batch() batch.Interface             { return batch.New(f, f.namespace, f.some) }
func (f *Factory) Certificates() certificates.Interface {
	return certificates.New(f, f.namespace, f.some)
}
func (f *Factory) Coordination() coordination.Interface {
	return coordination.New(f, f.namespace, f.some)
}
func (f *Factory) Core() core.Interface               { return core.New(f, f.namespace, f.some) }
func (f *Factory) Discovery() discovery.Interface     { return discovery.New(f, f.namespace, f.some) }
func (f *Factory) Events() events.Interface           { return events.New(f, f.namespace, f.some) }
func (f *Factory) Extensions() extensions.Interface   { return extensions.New(f, f.namespace, f.some) }
func (f *Factory) Flowcontrol() flowcontrol.Interface { return flowcontrol.New(f, f.namespace, f.some) }
func (f *Factory) Networking() networking.Interface   { return networking.New(f, f.namespace, f.some) }
func (f *Factory) Node() node.Interface               { return node.New(f, f.namespace, f.some) }
func (f *Factory) Policy() policy.Interface           { return policy.New(f, f.namespace, f.some) }
func (f *Factory) Rbac() rbac.Interface               { return rbac.New(f, f.namespace, f.some) }
func (f *Factory) Resource() resource.Interface       { return resource.New(f, f.namespace, f.some) }
func (f *Factory) Scheduling() scheduling.Interface   { return scheduling.New(f, f.namespace, f.some) }
func (f *Factory) Storage() storage.Interface         { return storage.New(f, f.namespace, f.some) }
func (f *Factory) Storagemigration() storagemigration.Interface {
	return storagemigration.New(f, f.namespace, f.some)
}
