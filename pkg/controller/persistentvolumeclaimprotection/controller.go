package persistentvolumeclaimprotection

import (
	"context"
	"errors"
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	coreinformers "k8s.io/client-go/informers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/protection"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// leaving finds the claims of a namespace that are being deleted and held by the finalizer.
var leaving = cache.NewIndex("pvcProtectionLeaving", func(object any) ([]string, error) {
	if claim, is := object.(*corev1.PersistentVolumeClaim); is && protection.Held(claim, Finalizer) {
		return []string{claim.Namespace}, nil
	}
	return nil, nil
})

type key = types.NamespacedName

// Controller protects claims; its keys are their names. It has one worker.
type Controller struct {
	*reconcile.Controller[key]
	claims, pods toolscache.Indexer
	unused       bool
	// lists are the live lists that other claims wait for, by namespace: the queue lets the
	// namespaces take turns. They belong to the worker.
	lists map[string]*listing
}

// New returns the controller, which is not running yet. Unused: it keeps the condition
// Unused too.
func New(claims coreinformers.PersistentVolumeClaimInformer, pods coreinformers.PodInformer, hand reconcile.Hand, unused bool) (*Controller, error) {
	if err := errors.Join(cache.Ensure(pods.Informer(), cache.PodsByClaim), cache.Ensure(claims.Informer(), leaving)); err != nil {
		return nil, err
	}
	c := &Controller{claims: claims.Informer().GetIndexer(), pods: pods.Informer().GetIndexer(), unused: unused, lists: map[string]*listing{}}
	c.Controller = reconcile.New(reconcile.Options[key]{
		Runner: runner.Options[key]{Name: "persistentvolumeclaim-protection-controller", Queue: "pvcprotection"},
		Hand:   hand, Caches: reconcile.Caches{corev1.Resource("persistentvolumeclaims"): c.claims}, Note: c.note,
	}, c.observe, plan)
	return c, errors.Join(
		runner.Watch(c.Runner, claims.Informer(), func(change runner.Change[corev1.PersistentVolumeClaim], wake runner.Wake[key]) {
			if change.New != nil && c.concerns(change.New) {
				wake.Add(client.ObjectKeyFromObject(change.New))
			}
		}),
		runner.Watch(c.Runner, pods.Informer(), c.podChanged),
	)
}

// concerns reports whether there may be something to do about a claim.
func (c *Controller) concerns(claim *corev1.PersistentVolumeClaim) bool {
	return protection.Concerns(claim, Finalizer) || c.unused && claim.DeletionTimestamp == nil
}

func (c *Controller) podChanged(change runner.Change[corev1.Pod], wake runner.Wake[key]) {
	old, now := waking(change.Old, change.New, c.unused)
	if old {
		c.wakeClaims(change.Old, wake)
	}
	if now {
		c.wakeClaims(change.New, wake)
	}
}

// wakeClaims wakes the claims of a pod that the cache shows to be concerned; others wake
// by themselves when they are.
func (c *Controller) wakeClaims(pod *corev1.Pod, wake runner.Wake[key]) {
	for _, name := range claimsOf(pod) {
		k := key{Namespace: pod.Namespace, Name: name}
		if claim, err := reconcile.Cached[corev1.PersistentVolumeClaim](c.claims, k); err == nil && c.concerns(claim) {
			wake.Add(k)
		}
	}
}

// note keeps a list, and drops those that nobody waits for any more.
func (c *Controller) note(k key, note any) {
	now := c.Clock().Now()
	maps.DeleteFunc(c.lists, func(_ string, l *listing) bool { return l.over(now) })
	if l, is := note.(*listing); is {
		c.lists[k.Namespace] = l
	}
}

func (c *Controller) observe(_ context.Context, k key) (observed, error) {
	claim, err := reconcile.Cached[corev1.PersistentVolumeClaim](c.claims, k)
	if err != nil {
		return observed{}, err
	}
	o := observed{claim: claim, unused: c.unused}
	if o.pods, err = cache.Lookup[corev1.Pod](c.pods, cache.PodsByClaim, k.String()); err != nil || !protection.Held(claim, Finalizer) {
		return o, err
	}
	if o.live, o.waited = c.lists[k.Namespace].take(claim, c.Clock().Now()); o.waited || holder(claim, o.pods) != "" {
		return o, nil
	}
	others, err := cache.Lookup[corev1.PersistentVolumeClaim](c.claims, leaving, k.Namespace)
	o.waiting = sets.New[types.UID]()
	for _, other := range others {
		o.waiting.Insert(other.UID)
	}
	return o, err
}
