package csi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	storagelisters "k8s.io/client-go/listers/storage/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
)

// Sidecar is one of the processes that run beside a driver.
type Sidecar string

// The side-cars that there are.
const (
	Provisioner Sidecar = "provisioner"
	Attacher    Sidecar = "attacher"
	Resizer     Sidecar = "resizer"
)

// Sidecars are all side-cars.
var Sidecars = []Sidecar{Provisioner, Attacher, Resizer}

// Call is what a side-car asks of its driver.
type Call string

// The calls that there are.
const (
	Provision Call = "provision"
	Delete    Call = "delete"
	Attach    Call = "attach"
	Detach    Call = "detach"
	Resize    Call = "resize"
	Modify    Call = "modify"
)

// Calls are all calls.
var Calls = []Call{Provision, Delete, Attach, Detach, Resize, Modify}

// Answer is how a driver answers a call. The zero value is success.
type Answer struct {
	// Error is what it answers instead.
	Error string
	// Never means that it does not answer.
	Never bool
}

func (a Answer) success() bool { return a == Answer{} }

// Driver is a CSI driver with its side-cars.
type Driver struct {
	name     string
	sidecars []Sidecar
	client   kubernetes.Interface
	queue    workqueue.TypedRateLimitingInterface[item]
	stop     func()

	claims      corelisters.PersistentVolumeClaimLister
	volumes     corelisters.PersistentVolumeLister
	attachments storagelisters.VolumeAttachmentLister
	stores      map[string]cache.Store

	mu      sync.Mutex
	answers map[Call]Answer
}

// item is an object to look at.
type item struct {
	kind string
	key  cache.ObjectName
}

// The kinds of items.
const (
	claimKind      = "claim"
	volumeKind     = "volume"
	attachmentKind = "attachment"
)

// Start starts side-cars of a driver; all of them if none are named. They run
// until Stop.
func Start(client kubernetes.Interface, name string, sidecars ...Sidecar) (*Driver, error) {
	if len(sidecars) == 0 {
		sidecars = Sidecars
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	core, storage := factory.Core().V1(), factory.Storage().V1()
	d := &Driver{
		name: name, sidecars: sidecars, client: client, answers: map[Call]Answer{}, stores: map[string]cache.Store{},
		claims:      core.PersistentVolumeClaims().Lister(),
		volumes:     core.PersistentVolumes().Lister(),
		attachments: storage.VolumeAttachments().Lister(),
		queue: workqueue.NewTypedRateLimitingQueue(
			workqueue.NewTypedItemExponentialFailureRateLimiter[item](20*time.Millisecond, time.Second)),
	}
	for kind, informer := range map[string]cache.SharedIndexInformer{
		claimKind:      core.PersistentVolumeClaims().Informer(),
		volumeKind:     core.PersistentVolumes().Informer(),
		attachmentKind: storage.VolumeAttachments().Informer(),
	} {
		d.stores[kind] = informer.GetStore()
		if _, err := informer.AddEventHandler(d.handler(kind)); err != nil {
			return nil, fmt.Errorf("watch for the driver %s: %w", name, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	var workers sync.WaitGroup
	d.stop = sync.OnceFunc(func() {
		cancel()
		d.queue.ShutDown()
		factory.Shutdown()
		workers.Wait()
	})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for range 8 {
		workers.Go(func() { d.work(ctx) })
	}
	return d, nil
}

// Stop ends the side-cars, as when the driver is gone.
func (d *Driver) Stop() { d.stop() }

// Answers sets how the driver answers a call from now on.
func (d *Driver) Answers(call Call, with Answer) {
	d.mu.Lock()
	d.answers[call] = with
	d.mu.Unlock()
	for kind, store := range d.stores {
		for _, obj := range store.List() {
			d.enqueue(kind, obj)
		}
	}
}

func (d *Driver) answer(call Call) Answer {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.answers[call]
}

func (d *Driver) handler(kind string) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { d.enqueue(kind, obj) },
		UpdateFunc: func(_, obj any) { d.enqueue(kind, obj) },
		DeleteFunc: func(obj any) { d.enqueue(kind, obj) },
	}
}

func (d *Driver) enqueue(kind string, obj any) {
	if key, err := cache.DeletionHandlingObjectToName(obj); err == nil {
		d.queue.Add(item{kind, key})
	}
	// A volume may have waited for its attachment to go.
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	if volume := volumeOf(obj); volume != "" {
		d.queue.Add(item{volumeKind, cache.ObjectName{Name: volume}})
	}
}

func (d *Driver) work(ctx context.Context) {
	for {
		next, down := d.queue.Get()
		if down {
			return
		}
		err := d.sync(ctx, next)
		if err == nil || ctx.Err() != nil {
			d.queue.Forget(next)
		} else {
			d.queue.AddRateLimited(next)
		}
		d.queue.Done(next)
	}
}

func (d *Driver) sync(ctx context.Context, next item) error {
	switch next.kind {
	case claimKind:
		if claim, err := d.claims.PersistentVolumeClaims(next.key.Namespace).Get(next.key.Name); err == nil {
			return errors.Join(
				does(ctx, d, Provisioner, d.provision, claim),
				does(ctx, d, Resizer, d.resize, claim),
				does(ctx, d, Resizer, d.modify, claim))
		}
	case volumeKind:
		if volume, err := d.volumes.Get(next.key.Name); err == nil {
			return errors.Join(
				does(ctx, d, Provisioner, d.guard, volume),
				does(ctx, d, Provisioner, d.reclaim, volume),
				does(ctx, d, Attacher, d.release, volume))
		}
	case attachmentKind:
		if va, err := d.attachments.Get(next.key.Name); err == nil {
			return errors.Join(
				does(ctx, d, Attacher, d.attach, va),
				does(ctx, d, Attacher, d.detach, va))
		}
	}
	return nil
}

// does has a side-car look at an object, if it runs.
func does[T any](ctx context.Context, d *Driver, s Sidecar, do func(context.Context, T) error, obj T) error {
	if !slices.Contains(d.sidecars, s) {
		return nil
	}
	return do(ctx, obj)
}

// without returns the finalizers of an object except one.
func without(obj metav1.Object, finalizer string) []string {
	return slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == finalizer })
}
