package monitor

import (
	"context"
	"runtime/debug"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	caches "github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/transport"
)

// resourceWatch is the watch of one resource.
type resourceWatch struct {
	resource Resource
	informer cache.SharedIndexInformer
	health   *health
	// wanted is by whom.
	wanted  []Interest
	handler cache.ResourceEventHandlerRegistration
	// stop ends the watch and returns when no more changes are delivered.
	stop func()
	// before holds the objects that the watch of another version delivered; what
	// became of those that this one does not find is not known.
	before []metav1.Object
	// shown is the state as it was reported last.
	shown State
}

// watch begins to watch a resource, from the cache of a controller if there is one.
func (s *Set) watch(ctx context.Context, r Resource, wanted []Interest) (*resourceWatch, error) {
	w := &resourceWatch{resource: r, wanted: wanted, health: newHealth(s.o.Clock)}
	w.shown = State{Resource: r, Since: w.health.since}
	whole, ok := s.o.Whole(r)
	if !ok {
		return w, w.watchMetadata(ctx, s)
	}
	w.informer, w.health = whole, s.healthOf(whole)
	if s.o.Reads != nil {
		w.health.readBy(func() time.Time { return s.o.Reads.since(r.GroupResource()) })
	}
	if err := w.listen(); err != nil {
		return nil, err
	}
	w.stop = func() { w.unlisten(ctx) }
	return w, nil
}

func (w *resourceWatch) unlisten(ctx context.Context) {
	if err := w.informer.RemoveEventHandler(w.handler); err != nil {
		klog.FromContext(ctx).Error(err, "Cannot remove an event handler from a cache", "resource", w.resource.GroupVersionResource)
	}
}

// watchMetadata gives the resource a cache of its own.
func (w *resourceWatch) watchMetadata(ctx context.Context, s *Set) error {
	client := heard{s.o.Metadata, w.health}
	w.informer = metadatainformer.NewFilteredMetadataInformer(client, w.resource.GroupVersionResource,
		metav1.NamespaceAll, 0, byNamespace, caches.Latest).Informer()
	w.health.version = w.informer.LastSyncResourceVersion
	if err := w.informer.SetTransform(slim); err != nil {
		return err
	}
	err := w.informer.SetWatchErrorHandlerWithContext(func(ctx context.Context, _ *cache.Reflector, err error) {
		if ctx.Err() == nil {
			w.health.fail(err)
			s.poke()
		}
	})
	if err != nil {
		return err
	}
	if err := w.listen(); err != nil {
		return err
	}
	running, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.informer.RunWithContext(running)
	}()
	w.stop = func() {
		w.unlisten(ctx)
		cancel()
		transport.AwaitWatches(func() { <-done })
	}
	return nil
}

// listen passes every change on to the rules, which may wait for the locks of a whole graph
// or of the books of a namespace.
func (w *resourceWatch) listen() (err error) {
	add := w.informer.AddEventHandler
	if shared, is := w.informer.(interface {
		AddSlowHandler(cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error)
	}); is {
		add = shared.AddSlowHandler
	}
	w.handler, err = add(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(now any, initial bool) { w.call(nil, now, initial) },
		UpdateFunc: func(before, now any) { w.call(before, now, false) },
		DeleteFunc: func(before any) {
			if tombstone, ok := before.(cache.DeletedFinalStateUnknown); ok {
				w.miss(tombstone.Obj, nil)
				return
			}
			w.call(before, nil, false)
		},
	})
	return err
}

// call calls the rules with a change.
func (w *resourceWatch) call(before, now any, initial bool) {
	older, newer := asObject(before), asObject(now)
	if older == nil && newer == nil {
		return
	}
	for _, i := range w.wanted {
		w.contain(func() { i.Changed(w.resource, older, newer, initial) })
	}
}

// miss calls the rules with an object whose deletion was not seen; now is the one
// that has its name since, if any.
func (w *resourceWatch) miss(last any, now metav1.Object) {
	object := asObject(last)
	if object == nil {
		return
	}
	for _, i := range w.wanted {
		w.contain(func() {
			if i.Missing != nil {
				i.Missing(w.resource, object)
				return
			}
			i.Changed(w.resource, object, now, false)
		})
	}
}

// contain keeps a panic in a rule from ending the informer, which would deliver
// nothing more to anyone.
func (w *resourceWatch) contain(rule func()) {
	defer func() {
		if p := recover(); p != nil {
			klog.Background().Error(nil, "Recovered from a panic in an event handler",
				"resource", w.resource.GroupVersionResource, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	rule()
}

func asObject(object any) metav1.Object {
	if object == nil {
		return nil
	}
	accessor, err := meta.Accessor(object)
	if err != nil {
		return nil
	}
	return accessor
}

// listed reports whether all that existed was delivered.
func (w *resourceWatch) listed() bool { return w.handler.HasSynced() }

// state is how the watch is doing.
func (w *resourceWatch) state() State {
	since, recovered, err := w.health.state()
	return State{Resource: w.resource, Listed: w.listed(), Err: err, Since: since, Recovered: recovered}
}

// objects are all that the watch holds.
func (w *resourceWatch) objects() []metav1.Object {
	items := w.informer.GetStore().List()
	objects := make([]metav1.Object, 0, len(items))
	for _, item := range items {
		if object := asObject(item); object != nil {
			objects = append(objects, object)
		}
	}
	return objects
}

// release reports the objects that the watch of the earlier version had and this
// one lacks, once this one has listed.
func (w *resourceWatch) release() {
	if w.before == nil || !w.listed() {
		return
	}
	w.health.replaced()
	here := map[cache.ObjectName]metav1.Object{}
	for _, object := range w.objects() {
		here[cache.MetaObjectToName(object)] = object
	}
	for _, object := range w.before {
		if now := here[cache.MetaObjectToName(object)]; now == nil || now.GetUID() != object.GetUID() {
			w.miss(object, now)
		}
	}
	w.before = nil
}
