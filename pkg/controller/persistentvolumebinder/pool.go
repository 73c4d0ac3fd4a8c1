package persistentvolumebinder

import (
	"cmp"
	"math"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	volumehelpers "k8s.io/component-helpers/storage/volume"
)

// pool holds the newest known state of all volumes: what the cache showed, and what
// was written since. It finds the volume of a claim at a cost that does not depend on
// how many volumes there are, and lends each to one key at a time.
type pool struct {
	mu sync.Mutex
	// volumes are by name; their objects are shared and read-only.
	volumes map[string]*corev1.PersistentVolume
	// byClaim are the names of volumes whose claimRef names that claim.
	byClaim map[types.NamespacedName]map[string]bool
	// shelves are the volumes that are free to be bound, the smallest first.
	shelves map[shelfKey][]item
	// lent says who works on a volume.
	lent map[string]*loan
}

// shelfKey is what all volumes of a shelf have in common.
type shelfKey struct {
	class, attributes string
	mode              corev1.PersistentVolumeMode
	access            accessModes
}

// item is a volume on a shelf, with its size in bytes, so that a search touches few volumes.
type item struct {
	bytes int64
	*corev1.PersistentVolume
}

func itemOf(pv *corev1.PersistentVolume) item {
	capacity := capacityOf(pv)
	return item{bytesOf(capacity), pv}
}

// bytesOf is a size in bytes; the most that an int64 holds for one beyond it, such as 10E.
func bytesOf(size resource.Quantity) int64 {
	if size.CmpInt64(math.MaxInt64) >= 0 {
		return math.MaxInt64
	}
	return size.Value()
}

// bySize is the order on a shelf.
func bySize(a, b item) int { return cmp.Or(cmp.Compare(a.bytes, b.bytes), cmp.Compare(a.Name, b.Name)) }

// loan is of a volume that a key works on.
type loan struct {
	to borrower
	// then wakes those who have asked for the volume meanwhile.
	then []func()
}

// borrower is the key that works on a volume: that of a claim, or the volume itself.
type borrower struct {
	claim  types.NamespacedName
	volume string
}

func newPool() *pool {
	return &pool{
		volumes: map[string]*corev1.PersistentVolume{}, byClaim: map[types.NamespacedName]map[string]bool{},
		shelves: map[shelfKey][]item{}, lent: map[string]*loan{},
	}
}

// seen takes in what the cache shows, unless something newer is known.
func (p *pool) seen(pv *corev1.PersistentVolume) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.put(pv)
}

// wrote takes in the answer to a write, until the cache shows it. A volume that is not there
// any more stays away.
func (p *pool) wrote(pv *corev1.PersistentVolume) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.volumes[pv.Name]; known != nil && known.UID == pv.UID && older(known, pv) {
		p.put(pv)
	}
}

func (p *pool) put(pv *corev1.PersistentVolume) {
	if known := p.volumes[pv.Name]; known != nil {
		if known == pv || older(pv, known) {
			return
		}
		p.drop(known)
	}
	p.volumes[pv.Name] = pv
	if ref := pv.Spec.ClaimRef; ref != nil {
		claim := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		if p.byClaim[claim] == nil {
			p.byClaim[claim] = map[string]bool{}
		}
		p.byClaim[claim][pv.Name] = true
	}
	if free(pv) {
		key := shelfOf(pv)
		at, _ := slices.BinarySearchFunc(p.shelves[key], itemOf(pv), bySize)
		p.shelves[key] = slices.Insert(p.shelves[key], at, itemOf(pv))
	}
}

// gone forgets a volume that was deleted.
func (p *pool) gone(pv *corev1.PersistentVolume) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.volumes[pv.Name]; known != nil && known.UID == pv.UID {
		p.drop(known)
	}
}

func (p *pool) drop(known *corev1.PersistentVolume) {
	delete(p.volumes, known.Name)
	if ref := known.Spec.ClaimRef; ref != nil {
		claim := types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}
		if delete(p.byClaim[claim], known.Name); len(p.byClaim[claim]) == 0 {
			delete(p.byClaim, claim)
		}
	}
	if free(known) {
		key := shelfOf(known)
		if at, found := slices.BinarySearchFunc(p.shelves[key], itemOf(known), bySize); found {
			p.shelves[key] = slices.Delete(p.shelves[key], at, at+1)
		}
		if len(p.shelves[key]) == 0 {
			delete(p.shelves, key)
		}
	}
}

// newest returns what is known of a volume beyond what the cache shows.
func (p *pool) newest(cached *corev1.PersistentVolume) *corev1.PersistentVolume {
	p.mu.Lock()
	defer p.mu.Unlock()
	if known := p.volumes[cached.Name]; known != nil && known.UID == cached.UID && older(cached, known) {
		return known
	}
	return cached
}

// all returns the newest state of every volume.
func (p *pool) all() []*corev1.PersistentVolume {
	p.mu.Lock()
	defer p.mu.Unlock()
	volumes := make([]*corev1.PersistentVolume, 0, len(p.volumes))
	for _, pv := range p.volumes {
		volumes = append(volumes, pv)
	}
	return volumes
}

// borrow lends the volume of that name to a key and returns it. While another key works
// on it nothing is lent: wake is called when that has ended.
func (p *pool) borrow(name string, to borrower, wake func()) (pv *corev1.PersistentVolume, busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.volumes[name], !p.lend(name, to, wake)
}

func (p *pool) lend(name string, to borrower, wake func()) bool {
	if l := p.lent[name]; l != nil && l.to != to {
		l.then = append(l.then, wake)
		return false
	}
	if p.lent[name] == nil {
		p.lent[name] = &loan{to: to}
	}
	return true
}

// giveBack ends the loan of a volume, if it is lent to this key.
func (p *pool) giveBack(name string, from borrower) {
	p.mu.Lock()
	l := p.lent[name]
	if l == nil || l.to != from {
		p.mu.Unlock()
		return
	}
	delete(p.lent, name)
	p.mu.Unlock()
	for _, wake := range l.then {
		wake()
	}
}

// match lends to a claim that names no volume the one to bind it to; nil if there is
// none. With wait only a volume that names the claim is taken, because the scheduler
// chooses all others.
func (p *pool) match(claim *corev1.PersistentVolumeClaim, selector labels.Selector, wait bool, wake func()) (pv *corev1.PersistentVolume, busy bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	to := borrower{claim: keyOf(claim)}
	asked, size := accessModesOf(claim.Spec.AccessModes), requested(claim)
	prebound := p.prebound(claim)
	for _, access := range asked.supersets() {
		for _, pv := range prebound {
			if accessModesOf(pv.Spec.AccessModes) == access {
				return pv, !p.lend(pv.Name, to, wake)
			}
		}
		if wait {
			continue
		}
		shelf := p.shelves[wantedShelf(claim, access)]
		for _, item := range shelf[atLeast(shelf, size):] {
			pv := item.PersistentVolume
			if capacity := capacityOf(pv); capacity.Cmp(size) < 0 || !selector.Matches(labels.Set(pv.Labels)) {
				continue
			}
			if l := p.lent[pv.Name]; l != nil && l.to.volume == "" && l.to != to {
				continue // it is being bound to another claim
			}
			return pv, !p.lend(pv.Name, to, wake)
		}
	}
	return nil, false
}

// prebound returns the volumes that name this claim and fit it, the smallest first.
func (p *pool) prebound(claim *corev1.PersistentVolumeClaim) []*corev1.PersistentVolume {
	var fit []*corev1.PersistentVolume
	for name := range p.byClaim[keyOf(claim)] {
		if pv := p.volumes[name]; volumehelpers.IsVolumeBoundToClaim(pv, claim) && suits(pv, claim) {
			fit = append(fit, pv)
		}
	}
	slices.SortFunc(fit, func(a, b *corev1.PersistentVolume) int { return bySize(itemOf(a), itemOf(b)) })
	return fit
}

// free reports whether a volume waits for any claim.
func free(pv *corev1.PersistentVolume) bool {
	return pv.Spec.ClaimRef == nil && pv.Status.Phase == corev1.VolumeAvailable && pv.DeletionTimestamp == nil
}

func shelfOf(pv *corev1.PersistentVolume) shelfKey {
	return shelfKey{classOfVolume(pv), attributesOf(pv.Spec.VolumeAttributesClassName), modeOf(pv.Spec.VolumeMode), accessModesOf(pv.Spec.AccessModes)}
}

func wantedShelf(claim *corev1.PersistentVolumeClaim, access accessModes) shelfKey {
	return shelfKey{classOf(claim), attributesOf(claim.Spec.VolumeAttributesClassName), modeOf(claim.Spec.VolumeMode), access}
}

// atLeast is where the volumes of a shelf begin that may hold so much.
func atLeast(shelf []item, size resource.Quantity) int {
	at, _ := slices.BinarySearchFunc(shelf, bytesOf(size), func(i item, bytes int64) int {
		if i.bytes < bytes {
			return -1
		}
		return 1
	})
	return at
}

// older reports whether one state of a volume is older than another. A volume that was
// made again under its name has a higher version too.
func older(a, b *corev1.PersistentVolume) bool {
	c, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return err == nil && c < 0
}
