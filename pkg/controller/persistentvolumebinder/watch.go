package persistentvolumebinder

import (
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

var (
	// pendingByClass finds the claims that wait for any volume of a class.
	pendingByClass = cache.NewIndex("pendingByClass", func(object any) ([]string, error) {
		if claim, is := object.(*corev1.PersistentVolumeClaim); is && pending(claim) && claim.Spec.VolumeName == "" {
			return []string{classOf(claim)}, nil
		}
		return nil, nil
	})
	// claimsByVolume finds the claims that name a volume, bound or not.
	claimsByVolume = cache.NewIndex("claimsByVolume", func(object any) ([]string, error) {
		if claim, is := object.(*corev1.PersistentVolumeClaim); is && claim.Spec.VolumeName != "" {
			return []string{claim.Spec.VolumeName}, nil
		}
		return nil, nil
	})
)

// together is how long a claim that a new volume fits waits for others: volumes that are made
// together come one after the other, and the claim is to have the one that suits it best.
const together = time.Second

func pending(claim *corev1.PersistentVolumeClaim) bool {
	return !metav1.HasAnnotation(claim.ObjectMeta, volumehelpers.AnnBindCompleted)
}

// wakeClaim has a claim looked at, and its events sent again.
func (c *Controller) wakeClaim(key types.NamespacedName) {
	c.loud.Store(key, true)
	c.claims.Add(key)
}

// claimChanged wakes a claim, and the volume of one that was deleted.
func (c *Controller) claimChanged(change runner.Change[corev1.PersistentVolumeClaim], _ runner.Wake[types.NamespacedName]) {
	claim := change.Now()
	if replaced := change.Old != nil && change.New != nil && change.Old.UID != change.New.UID; replaced || change.New == nil {
		c.claimGone(change.Old)
	}
	switch {
	case change.New == nil:
	case c.isOwn(claim):
		c.claims.Add(keyOf(claim))
	default:
		c.wakeClaim(keyOf(claim))
	}
}

func (c *Controller) claimGone(claim *corev1.PersistentVolumeClaim) {
	c.loud.Delete(keyOf(claim))
	c.own.Delete(keyOf(claim))
	c.timers.claimGone(keyOf(claim))
	c.ledger.forget(claim.UID)
	c.claims.Add(keyOf(claim)) // drops what is known of the key
	if claim.Spec.VolumeName != "" {
		c.volumes.Add(claim.Spec.VolumeName)
	}
}

// volumeChanged wakes a volume.
func volumeChanged(change runner.Change[corev1.PersistentVolume], wake runner.Wake[string]) {
	wake.Add(change.Now().Name)
}

// volumeChangedForClaims keeps the pool, and wakes the claims that the change is about.
func (c *Controller) volumeChangedForClaims(change runner.Change[corev1.PersistentVolume], wake runner.Wake[types.NamespacedName]) {
	pv := change.Now()
	if replaced := change.Old != nil && change.New != nil && change.Old.UID != change.New.UID; replaced || change.New == nil {
		c.volumeGone(change.Old)
	}
	if change.New == nil {
		return
	}
	if change.Old != nil && older(pv, change.Old) { // etcd was restored: what was known never happened
		c.pool.gone(pv)
	}
	c.pool.seen(pv)
	if !change.Initial { // at the start every claim is looked at
		c.wakeFor(pv, wake)
	}
}

func (c *Controller) volumeGone(pv *corev1.PersistentVolume) {
	c.pool.gone(pv)
	c.ledger.forget(pv.UID)
	c.timers.volumeGone(pv.Name, c.clock.Now())
	if ref := pv.Spec.ClaimRef; ref != nil {
		c.wakeClaim(types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name})
	}
}

// wakeFor wakes, without further events, the claims that a volume may be for: the one that
// it names, and those that name it, which may have lost it. If none does, the one that asks
// for most of those that it fits.
func (c *Controller) wakeFor(pv *corev1.PersistentVolume, wake runner.Wake[types.NamespacedName]) {
	if isReleased(pv) {
		return
	}
	if ref := pv.Spec.ClaimRef; ref != nil {
		key := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		if item, exists, err := c.claimStore.GetByKey(key.String()); err == nil && exists && pending(item.(*corev1.PersistentVolumeClaim)) {
			wake.Add(key)
		}
	}
	named := c.claimsOf(claimsByVolume, pv.Name)
	for _, claim := range named {
		if pending(claim) || pv.Spec.ClaimRef == nil {
			wake.Add(keyOf(claim))
		}
	}
	mayHave := func(claim *corev1.PersistentVolumeClaim) bool { return !pending(claim) || fits(pv, claim) }
	if !free(pv) || slices.ContainsFunc(named, mayHave) {
		return
	}
	now := c.clock.Now()
	maps.DeleteFunc(c.woken, func(_ types.NamespacedName, at time.Time) bool { return now.Sub(at) >= together })
	var first *corev1.PersistentVolumeClaim
	for _, claim := range c.claimsOf(pendingByClass, classOfVolume(pv)) {
		if _, woken := c.woken[keyOf(claim)]; !woken && (first == nil || asksMore(claim, first)) && fits(pv, claim) {
			first = claim
		}
	}
	if first != nil {
		c.woken[keyOf(first)] = now
		wake.AddAfter(keyOf(first), together)
	}
}

// asksMore orders claims by what few volumes have, and then by age.
func asksMore(a, b *corev1.PersistentVolumeClaim) bool {
	x, y := requested(a), requested(b)
	if c := x.Cmp(y); c != 0 {
		return c > 0
	}
	return a.CreationTimestamp.Before(&b.CreationTimestamp)
}

// classChanged wakes the pending claims of a class. Those without one get the default
// class at a resync, when all defaults are there that come together.
func (c *Controller) classChanged(change runner.Change[storagev1.StorageClass], wake runner.Wake[types.NamespacedName]) {
	if change.Initial || change.New == nil {
		return
	}
	for _, claim := range c.claimsOf(pendingByClass, change.New.Name) {
		wake.Add(keyOf(claim))
	}
}

// podChanged wakes the pending claims of a pod that came, or got a node.
func (c *Controller) podChanged(change runner.Change[corev1.Pod], wake runner.Wake[types.NamespacedName]) {
	pod := change.New
	if pod == nil || change.Initial || change.Old != nil && change.Old.Spec.NodeName == pod.Spec.NodeName {
		return
	}
	for i := range pod.Spec.Volumes {
		source := pod.Spec.Volumes[i].PersistentVolumeClaim
		if source == nil {
			continue
		}
		key := types.NamespacedName{Namespace: pod.Namespace, Name: source.ClaimName}
		if item, exists, err := c.claimStore.GetByKey(key.String()); err == nil && exists && pending(item.(*corev1.PersistentVolumeClaim)) {
			wake.Add(key)
		}
	}
}

func (c *Controller) claimsOf(index cache.Index, value string) []*corev1.PersistentVolumeClaim {
	found, err := cache.Lookup[corev1.PersistentVolumeClaim](c.claimIndex, index, value)
	if err != nil {
		return nil // the index is there from the start
	}
	return found
}
