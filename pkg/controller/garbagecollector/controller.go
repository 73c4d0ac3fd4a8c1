package garbagecollector

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/monitor"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name = "garbage-collector-controller"
	// EventComponent is to be the source of the events that the controller records.
	EventComponent = name

	deleteQueue = "garbage_collector_attempt_to_delete"
	orphanQueue = "garbage_collector_attempt_to_orphan"
	graphQueue  = "garbage_collector_graph_changes"

	// stuckAfter allows for an owner of very many dependents that are to be orphaned.
	stuckAfter = 30 * time.Minute
)

// Options are the settings of the controller.
type Options struct {
	// Workers is how many objects are looked at, and how many owners parted from
	// their dependents, at once; 1 by default.
	Workers int
	// Ignored are the resources that are not followed.
	Ignored []schema.GroupResource
}

// Controller collects garbage; its keys are a namespace and a UID.
type Controller struct {
	*runner.Group
	looks, orphans, findings *runner.Runner[key]

	graph     *graph
	collector *collector
	followed  *monitor.Followed
	mapper    meta.RESTMapper

	mu sync.Mutex
	// kinds holds one kind for each version of a resource.
	kinds map[schema.GroupVersionResource]*kind
	// waiting are the keys that failed last and are tried again when more can be
	// read, held the owners that keep their dependents until all can be.
	waiting, held map[key]struct{}
	// served and broken are what the monitors said last.
	served, broken map[string]bool
}

// New returns the controller, which is not running yet, and is to be made before
// the monitors run. The mapper knows what is served.
func New(monitors *monitor.Set, mapper meta.RESTMapper, hand reconcile.Hand, o Options) *Controller {
	register()
	c := &Controller{
		graph: newGraph(), mapper: mapper, kinds: map[schema.GroupVersionResource]*kind{}, waiting: map[key]struct{}{}, held: map[key]struct{}{},
		served: map[string]bool{}, broken: map[string]bool{},
	}
	ignored := map[schema.GroupResource]bool{}
	for _, r := range o.Ignored {
		ignored[r] = true
	}
	c.followed = monitors.Follow(monitor.Interest{
		Name: name,
		Wants: func(r monitor.Resource) bool {
			return r.Can("delete", "list", "watch") && !ignored[r.GroupResource()]
		},
		Changed: c.changed, Missing: c.missing, Served: c.servedChanged,
	})
	ready := []cache.InformerSynced{c.followed.Ready}
	options := func(part, queue string, workers int, actor *act.Actor[key]) runner.Options[key] {
		o := runner.Options[key]{Name: name + "/" + part, Queue: queue, Workers: workers, Clock: hand.Clock, Synced: ready, StuckAfter: stuckAfter}
		if actor != nil {
			o.Decisions = func(k key) any { return actor.Decisions(k) }
		}
		return o
	}
	c.findings = runner.New(options("graph", graphQueue, 0, nil), c.find) // one worker, always
	c.collector = newCollector(hand, mapper, c.graph, c.cached, c.findings.Add)
	c.collector.unread = c.followed.Unread
	c.looks = runner.New(options("delete", deleteQueue, o.Workers, c.collector.looking), c.look)
	c.orphans = runner.New(options("orphan", orphanQueue, o.Workers, c.collector.parting), c.part)
	c.Group = runner.NewGroup(name, c.looks, c.orphans, c.findings)
	return c
}

// changed takes a change of an object into the graph. Watches of different
// resources call it at the same time; the order in which they come does not
// matter, as the graph only says what is worth a live look.
func (c *Controller) changed(r monitor.Resource, before, now metav1.Object, _ bool) {
	same := before != nil && now != nil && before.GetUID() == now.GetUID()
	if same && unchanged(before, now) {
		return
	}
	k := c.kind(r)
	if same {
		c.follow(c.graph.upsert(k, now))
		return
	}
	if before != nil {
		e := c.graph.remove(k, before.GetUID(), true)
		if len(e.look) > 0 {
			c.collector.owners.sawGone(identity(k, before.GetNamespace(), before.GetName(), before.GetUID()))
		}
		c.follow(e)
	}
	if now != nil {
		c.collector.owners.sawThere(identity(k, now.GetNamespace(), now.GetName(), now.GetUID()))
		c.follow(c.graph.upsert(k, now))
	}
}

// missing takes in that an object is not known any more. It need not have been
// deleted, so that what depends on it has to find out.
func (c *Controller) missing(r monitor.Resource, last metav1.Object) {
	c.follow(c.graph.remove(c.kind(r), last.GetUID(), false))
}

// follow carries out what follows from a change of the graph.
func (c *Controller) follow(e effects) {
	for _, k := range e.look {
		c.looks.Add(k)
	}
	for _, k := range e.orphan {
		c.orphans.Add(k)
	}
	for i := range e.mistakes {
		c.report(&e.mistakes[i])
	}
}

// report sends the event about a reference to an owner in another namespace.
func (c *Controller) report(m *mistake) {
	d := m.dependent
	on := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: d.name, UID: d.uid}}
	on.SetGroupVersionKind(d.kind.resource.GroupVersion().WithKind(d.kind.kind))
	c.collector.looking.Take(context.Background(), key{Namespace: on.Namespace, Name: string(on.UID)}, act.Event{
		On: on, Type: corev1.EventTypeWarning, Reason: "OwnerRefInvalidNamespace",
		Message: fmt.Sprintf("ownerRef [%s/%s, namespace: %s, name: %s, uid: %s] does not exist in namespace %q",
			m.ref.APIVersion, m.ref.Kind, on.Namespace, m.ref.Name, m.ref.UID, on.Namespace),
	})
}

func (c *Controller) look(ctx context.Context, k key) runner.Result {
	return c.remember(c.waiting, k, c.collector.look(ctx, k))
}

func (c *Controller) part(ctx context.Context, k key) runner.Result {
	return c.remember(c.held, k, c.collector.part(ctx, k))
}

// remember keeps a key among others if it failed.
func (c *Controller) remember(failed map[key]struct{}, k key, result runner.Result) runner.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	if result.Err() != nil {
		failed[k] = struct{}{}
	} else {
		delete(failed, k)
	}
	return result
}

// find takes in that an owner was not found.
func (c *Controller) find(_ context.Context, k key) runner.Result {
	c.follow(c.graph.missed(types.UID(k.Name)))
	return runner.Done()
}

// cached returns an object as its watch showed it last. Only built-in APIs are
// trusted to refuse a deletion when it is no longer so; others are asked first.
func (c *Controller) cached(v view) *metav1.PartialObjectMetadata {
	store, followed := c.followed.Store(v.kind.resource.GroupResource())
	if !followed || !scheme.Scheme.IsGroupRegistered(v.kind.resource.Group) {
		return nil
	}
	found, exists, err := store.GetByKey(cache.NewObjectName(v.namespace, v.name).String())
	o, ok := found.(metav1.Object)
	if err != nil || !exists || !ok {
		return nil
	}
	return &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
		Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion(),
		OwnerReferences: o.GetOwnerReferences(), Finalizers: o.GetFinalizers(), DeletionTimestamp: o.GetDeletionTimestamp(),
	}}
}

// servedChanged looks again at what could not be found out, and counts the resources that
// cannot be listed at first. What fails later is in kcm_monitored_resource_unavailable.
func (c *Controller) servedChanged() {
	served, broken := map[string]bool{}, map[string]bool{}
	for _, state := range c.followed.States() {
		served[state.Resource.GroupVersionResource.String()] = true
		if state.Err != nil && !state.Listed {
			broken[state.Resource.GroupVersionResource.String()] = true
		}
	}
	c.mu.Lock()
	waiting, held := slices.Collect(maps.Keys(c.waiting)), slices.Collect(maps.Keys(c.held))
	more := added(served, c.served)
	syncErrors.Add(float64(added(broken, c.broken)))
	c.served, c.broken = served, broken
	c.mu.Unlock()
	if more > 0 {
		meta.MaybeResetRESTMapper(c.mapper)
	}
	if len(waiting) > 0 {
		klog.Background().WithName(name).V(2).Info("Resources have become readable; retrying the objects that waited for them", "objects", len(waiting))
	}
	for _, k := range waiting {
		c.looks.Add(k)
	}
	wait := time.Duration(0)
	if c.collector.unread() != nil {
		wait = monitor.Margin // it may be good for a moment only yet
	}
	for _, k := range held {
		c.orphans.AddAfter(k, wait)
	}
}

// added counts what was not there before.
func added(now, before map[string]bool) int {
	n := 0
	for id := range now {
		if !before[id] {
			n++
		}
	}
	return n
}

func (c *Controller) kind(r monitor.Resource) *kind {
	c.mu.Lock()
	defer c.mu.Unlock()
	k, ok := c.kinds[r.GroupVersionResource]
	if !ok || k.namespaced != r.Namespaced || k.kind != r.Kind {
		k = &kind{r.GroupVersionResource, r.Kind, r.Namespaced}
		c.kinds[r.GroupVersionResource] = k
	}
	return k
}
