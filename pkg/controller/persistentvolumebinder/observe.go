package persistentvolumebinder

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// observeClaim reads a claim, borrows its volume, and reads what else decides.
func (c *Controller) observeClaim(ctx context.Context, key types.NamespacedName) (observedClaim, error) {
	_, loud := c.loud.LoadAndDelete(key)
	claim, err := reconcile.Cached[corev1.PersistentVolumeClaim](c.claimStore, key)
	if err != nil {
		c.own.Delete(key) // what was noted after the claim had gone
		c.timers.claimGone(key)
		return observedClaim{}, err
	}
	o := observedClaim{claim: claim, provisions: c.provisions, plugins: c.plugins, quiet: !loud}
	switch {
	case metav1.HasAnnotation(claim.ObjectMeta, volumehelpers.AnnBindCompleted):
		err = c.boundVolume(ctx, &o)
	case claim.Spec.VolumeName == "":
		err = c.matchingVolume(&o)
	default:
		o.volume, o.busy = c.borrow(key, claim.Spec.VolumeName)
	}
	if !o.quiet && (o.busy || err != nil) {
		c.loud.Store(key, true)
	}
	return o, err
}

// borrow lends a volume to a claim, which is woken if somebody else works on it.
func (c *Controller) borrow(claim types.NamespacedName, name string) (*corev1.PersistentVolume, bool) {
	pv, busy := c.pool.borrow(name, borrower{claim: claim}, func() { c.claims.Add(claim) })
	if !busy {
		c.borrowed.Store(claim, name)
	}
	return pv, busy
}

// boundVolume finds the volume of a claim that was bound once. Before the claim is
// reported as Lost, a live look confirms that it is.
func (c *Controller) boundVolume(ctx context.Context, o *observedClaim) error {
	name := o.claim.Spec.VolumeName
	if name == "" {
		return nil
	}
	if o.volume, o.busy = c.borrow(keyOf(o.claim), name); o.busy || o.claim.Status.Phase == corev1.ClaimLost && o.volume == nil {
		return nil
	}
	if pv := o.volume; pv != nil && (pv.Spec.ClaimRef == nil || pv.Spec.ClaimRef.UID == o.claim.UID) || o.claim.Status.Phase == corev1.ClaimLost {
		return nil
	}
	live, err := reconcile.Live[corev1.PersistentVolume](ctx, c.live, types.NamespacedName{Name: name})
	if err != nil {
		return fmt.Errorf("read volume %s live before its claim is reported as lost: %w", name, err)
	}
	o.volume = live
	return nil
}

// matchingVolume finds a volume for a claim that names none, and what decides when there
// is none.
func (c *Controller) matchingVolume(o *observedClaim) error {
	key := keyOf(o.claim)
	selector, err := selectorOf(o.claim)
	if err != nil {
		return fmt.Errorf("read the selector of the claim: %w", err)
	}
	o.class = c.class(classOf(o.claim))
	o.volume, o.busy = c.pool.match(o.claim, selector, waits(o.class), func() { c.claims.Add(key) })
	switch {
	case o.busy:
		return nil
	case o.volume != nil:
		c.borrowed.Store(key, o.volume.Name)
		return nil
	case !volumehelpers.PersistentVolumeClaimHasClass(o.claim):
		o.fallback, err = c.defaultClass()
		return err
	case waits(o.class) && !hasNode(o.claim):
		o.unscheduled, err = c.podsOf(key, func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" })
	}
	o.paused = c.ledger.pauses(provisionFor(o.claim), c.clock.Now())
	return err
}

// class returns the class of that name; nil if there is none.
func (c *Controller) class(name string) *storagev1.StorageClass {
	class, _ := c.classes.Get(name)
	return class
}

func (c *Controller) defaultClass() (*storagev1.StorageClass, error) {
	classes, err := c.classes.List(everything)
	if err != nil {
		return nil, err
	}
	return defaultOf(classes), nil
}

// podsOf returns the sorted names of the pods that use a claim, run, and are of this kind.
func (c *Controller) podsOf(claim types.NamespacedName, of func(*corev1.Pod) bool) ([]string, error) {
	found, err := cache.Lookup[corev1.Pod](c.podIndex, cache.PodsByClaim, claim.String())
	if err != nil {
		return nil, err
	}
	var names []string
	for _, pod := range found {
		if !pods.Stopped(pod) && of(pod) {
			names = append(names, pod.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// observeVolume reads a volume, borrows it, and looks for its claim.
func (c *Controller) observeVolume(ctx context.Context, name string) (observedVolume, error) {
	cached, err := reconcile.Cached[corev1.PersistentVolume](c.volumeStore, name)
	if err != nil {
		return observedVolume{}, err
	}
	if _, busy := c.pool.borrow(name, borrower{volume: name}, func() { c.volumes.Add(name) }); busy {
		return observedVolume{busy: true}, nil
	}
	o := observedVolume{volume: c.pool.newest(cached), plugins: c.plugins}
	ref := o.volume.Spec.ClaimRef
	if ref == nil || ref.UID == "" {
		return o, nil
	}
	o.class = c.class(classOfVolume(o.volume))
	o.failed, o.unused = c.ledger.of(o.volume.UID, ref.UID)
	key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
	claim, err := reconcile.Cached[corev1.PersistentVolumeClaim](c.claimStore, key)
	switch o.cached = err == nil; {
	case o.cached && claim.UID == ref.UID:
		o.claim = claim
		return o, nil
	case !isReleased(o.volume), reclaimingOf(o.volume, c.plugins).start != nil:
		if o.claim, err = c.liveClaim(ctx, key, ref.UID); err != nil {
			return o, err
		}
	}
	if o.claim == nil {
		o.users, err = c.podsOf(key, func(*corev1.Pod) bool { return true })
		for i, name := range o.users {
			o.users[i] = key.Namespace + "/" + name
		}
		return o, err
	}
	return o, nil
}

// liveClaim reads a claim live; nil if it is gone, or another one of that name.
func (c *Controller) liveClaim(ctx context.Context, key types.NamespacedName, uid types.UID) (*corev1.PersistentVolumeClaim, error) {
	if key.Namespace == "" {
		return nil, nil // there is none without a namespace
	}
	claim, err := reconcile.Live[corev1.PersistentVolumeClaim](ctx, c.live, key)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read claim %s live before its volume is released: %w", key, err)
	case claim == nil || claim.UID != uid:
		return nil, nil
	}
	return claim, nil
}
