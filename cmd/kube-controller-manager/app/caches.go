package app

import (
	"sync"

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
	toolscache "k8s.io/client-go/tools/cache"
)

// listedCaches are shared caches that can be named before they are started,
// which is the last moment to ask them to report their errors. The library's
// factory names only those that it has started. It serves caches of all
// namespaces, without a selector.
type listedCaches struct {
	informers.SharedInformerFactory

	mu    sync.Mutex
	known map[toolscache.SharedIndexInformer]bool
}

func listed(factory informers.SharedInformerFactory) *listedCaches {
	return &listedCaches{SharedInformerFactory: factory, known: map[toolscache.SharedIndexInformer]bool{}}
}

// all returns the caches that somebody asked for.
func (l *listedCaches) all() []toolscache.SharedIndexInformer {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]toolscache.SharedIndexInformer, 0, len(l.known))
	for informer := range l.known {
		all = append(all, informer)
	}
	return all
}

func (l *listedCaches) note(informer toolscache.SharedIndexInformer) toolscache.SharedIndexInformer {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[informer] = true
	return informer
}

// InformerFor returns the cache of the objects like this one; all caches are
// made here, but for those of ForResource.
func (l *listedCaches) InformerFor(object runtime.Object, make internalinterfaces.NewInformerFunc) toolscache.SharedIndexInformer {
	return l.note(l.SharedInformerFactory.InformerFor(object, make))
}

// ForResource returns the cache of a resource.
func (l *listedCaches) ForResource(r schema.GroupVersionResource) (informers.GenericInformer, error) {
	informer, err := l.SharedInformerFactory.ForResource(r)
	if err == nil {
		l.note(informer.Informer())
	}
	return informer, err
}

// Admissionregistration returns the caches of its groups.
func (l *listedCaches) Admissionregistration() admissionregistration.Interface {
	return admissionregistration.New(l, metav1.NamespaceAll, nil)
}

// Internal returns the caches of its groups.
func (l *listedCaches) Internal() apiserverinternal.Interface {
	return apiserverinternal.New(l, metav1.NamespaceAll, nil)
}

// Apps returns the caches of its groups.
func (l *listedCaches) Apps() apps.Interface { return apps.New(l, metav1.NamespaceAll, nil) }

// Autoscaling returns the caches of its groups.
func (l *listedCaches) Autoscaling() autoscaling.Interface {
	return autoscaling.New(l, metav1.NamespaceAll, nil)
}

// Batch returns the caches of its groups.
func (l *listedCaches) Batch() batch.Interface { return batch.New(l, metav1.NamespaceAll, nil) }

// Certificates returns the caches of its groups.
func (l *listedCaches) Certificates() certificates.Interface {
	return certificates.New(l, metav1.NamespaceAll, nil)
}

// Coordination returns the caches of its groups.
func (l *listedCaches) Coordination() coordination.Interface {
	return coordination.New(l, metav1.NamespaceAll, nil)
}

// Core returns the caches of its groups.
func (l *listedCaches) Core() core.Interface { return core.New(l, metav1.NamespaceAll, nil) }

// Discovery returns the caches of its groups.
func (l *listedCaches) Discovery() discovery.Interface {
	return discovery.New(l, metav1.NamespaceAll, nil)
}

// Events returns the caches of its groups.
func (l *listedCaches) Events() events.Interface { return events.New(l, metav1.NamespaceAll, nil) }

// Extensions returns the caches of its groups.
func (l *listedCaches) Extensions() extensions.Interface {
	return extensions.New(l, metav1.NamespaceAll, nil)
}

// Flowcontrol returns the caches of its groups.
func (l *listedCaches) Flowcontrol() flowcontrol.Interface {
	return flowcontrol.New(l, metav1.NamespaceAll, nil)
}

// Networking returns the caches of its groups.
func (l *listedCaches) Networking() networking.Interface {
	return networking.New(l, metav1.NamespaceAll, nil)
}

// Node returns the caches of its groups.
func (l *listedCaches) Node() node.Interface { return node.New(l, metav1.NamespaceAll, nil) }

// Policy returns the caches of its groups.
func (l *listedCaches) Policy() policy.Interface { return policy.New(l, metav1.NamespaceAll, nil) }

// Rbac returns the caches of its groups.
func (l *listedCaches) Rbac() rbac.Interface { return rbac.New(l, metav1.NamespaceAll, nil) }

// Resource returns the caches of its groups.
func (l *listedCaches) Resource() resource.Interface {
	return resource.New(l, metav1.NamespaceAll, nil)
}

// Scheduling returns the caches of its groups.
func (l *listedCaches) Scheduling() scheduling.Interface {
	return scheduling.New(l, metav1.NamespaceAll, nil)
}

// Storage returns the caches of its groups.
func (l *listedCaches) Storage() storage.Interface { return storage.New(l, metav1.NamespaceAll, nil) }

// Storagemigration returns the caches of its groups.
func (l *listedCaches) Storagemigration() storagemigration.Interface {
	return storagemigration.New(l, metav1.NamespaceAll, nil)
}
