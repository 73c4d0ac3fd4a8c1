package recycle

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

const (
	// liveLook is how often a pod is read live, in case that its cache is behind for good.
	liveLook = 30 * time.Second
	// farewell is how long the deletion of a pod may take at the end.
	farewell = 5 * time.Second
)

var (
	errOldPod  = errors.New("old recycler pod found, will retry later")
	errStopped = errors.New("the process ends")
)

// Pods has recycler pods run, one for a volume at a time.
type Pods struct {
	name    string // of the controller
	actor   *act.Actor[string]
	writes  *consistency.Tracker[string]
	cache   toolscache.Store
	live    client.Reader
	clock   clock.WithTicker
	limits  *act.Limits // nil for none
	events  Events
	stop    <-chan struct{}
	waiting sync.Map // from the name of a pod to the channel that hears of its changes
}

// NewPods returns what writes with that hand, hears of events through events and gives up
// when stop is closed. It is for one controller.
func NewPods(controller string, pods coreinformers.PodInformer, events Events, stop <-chan struct{}, hand reconcile.Hand) (*Pods, error) {
	writes := consistency.NewTracker[string](nil)
	o := reconcile.Options[string]{Name: controller, Hand: hand}
	o.Runner.Writes = writes
	p := &Pods{
		name: controller, actor: reconcile.NewActor(o), writes: writes, cache: pods.Informer().GetStore(),
		live: hand.Reader(), clock: hand.Clock, limits: hand.Limits, events: events, stop: stop,
	}
	if p.clock == nil {
		p.clock = clock.RealClock{}
	}
	_, err := pods.Informer().AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: p.changed, UpdateFunc: func(_, pod any) { p.changed(pod) }, DeleteFunc: p.changed,
	})
	return p, err
}

// changed has whoever waits for a pod look at it.
func (p *Pods) changed(object any) {
	if tombstone, is := object.(toolscache.DeletedFinalStateUnknown); is {
		object = tombstone.Obj
	}
	pod, is := object.(*corev1.Pod)
	if !is || !strings.HasPrefix(pod.Name, prefix) {
		return
	}
	if waits, is := p.waiting.Load(client.ObjectKeyFromObject(pod)); is {
		select {
		case waits.(chan struct{}) <- struct{}{}:
		default: // it will look anyway
		}
	}
}

// Recycle empties a volume, and returns why it did not. What events say of the pod it says
// on the way. The pod is deleted at the end, whatever became of it.
func (p *Pods) Recycle(ctx context.Context, r *Recycler, volume *corev1.PersistentVolume, say func(kind, message string)) error {
	pod := r.Pod(volume)
	name := client.ObjectKeyFromObject(pod)
	changes := make(chan struct{}, 1)
	p.waiting.Store(name, changes)
	defer p.waiting.Delete(name)
	defer p.writes.Forget(volume.Name)
	if err := p.create(ctx, volume.Name, pod); err != nil {
		return err
	}
	defer p.remove(ctx, volume.Name, pod)
	hearing, end := context.WithCancel(ctx)
	var heard sync.WaitGroup
	heard.Go(func() { p.retell(hearing, pod, say) })
	defer heard.Wait()
	defer end()
	return p.wait(ctx, name, pod.UID, changes)
}

// create creates the pod. One of an earlier try is deleted, and the next try has its turn.
func (p *Pods) create(ctx context.Context, key string, pod *corev1.Pod) error {
	result := p.actor.Take(ctx, key, act.Create{Object: pod, Same: func(client.Object) bool { return false }})
	switch {
	case result.Became == act.Taken:
		if old, read := result.Object.(*corev1.Pod); read && old != nil {
			p.remove(ctx, key, old)
		}
		return errOldPod
	case result.Became == act.Ending:
		return fmt.Errorf("unexpected error creating recycler pod:  namespace %s is being deleted", pod.Namespace)
	case result.Became == act.Uncertain:
		p.remove(ctx, key, pod) // it may be there
	}
	if result.Err != nil {
		return fmt.Errorf("unexpected error creating recycler pod:  %w", result.Err)
	}
	return nil
}

// remove deletes a pod: that of its UID, or any of its name while the UID is not known. A
// deletion that somebody holds back is done when it may be, while the caller goes on: no
// recycling is to look stuck for as long as a pause lasts. By its name alone it is deleted
// now or by the next try: the name may be that of another one later.
func (p *Pods) remove(ctx context.Context, key string, pod *corev1.Pod) {
	ctx = context.WithoutCancel(ctx)
	held := p.delete(ctx, key, pod)
	if held == nil || pod.UID == "" {
		return
	}
	go func() {
		for held != nil && act.Await(p.stop, p.clock, p.limits, held, p.name, pod.Namespace) {
			held = p.delete(ctx, key, pod)
		}
	}()
}

// delete deletes a pod, unless somebody holds that back.
func (p *Pods) delete(ctx context.Context, key string, pod *corev1.Pod) (held *consistency.Withheld) {
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	err := p.actor.Take(ctx, key, act.Delete{Of: pod, Listed: true}).Err
	if held = consistency.WasWithheld(err); held == nil && err != nil && !apierrors.IsConflict(err) {
		klog.FromContext(ctx).Error(err, "A recycler pod cannot be deleted; the next one for its volume tries again", "pod", klog.KObj(pod))
	}
	return held
}

// wait returns when the pod has ended, and why it has not done its work.
func (p *Pods) wait(ctx context.Context, name types.NamespacedName, uid types.UID, changes <-chan struct{}) error {
	ticker := p.clock.NewTicker(liveLook)
	defer ticker.Stop()
	for seen := false; ; {
		cached, err := reconcile.Cached[corev1.Pod](p.cache, name)
		switch {
		case err == nil && cached.UID == uid:
			seen = true
			if outcome := OutcomeOf(cached); outcome.Over {
				return outcome.Err
			}
		case seen:
			return OutcomeOf(nil).Err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-p.stop:
			return errStopped
		case <-changes:
		case <-ticker.C():
			if outcome := p.look(ctx, name, uid); outcome.Over {
				return outcome.Err
			}
		}
	}
}

// look reads the pod live. What cannot be read goes on.
func (p *Pods) look(ctx context.Context, name types.NamespacedName, uid types.UID) Outcome {
	pod := &corev1.Pod{}
	switch err := p.live.Get(ctx, name, pod); {
	case apierrors.IsNotFound(err), err == nil && pod.UID != uid:
		return OutcomeOf(nil)
	case err != nil:
		return Outcome{}
	}
	return OutcomeOf(pod)
}
