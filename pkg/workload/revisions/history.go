package revisions

import (
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

// Indexes are what Claims needs of the informer of ControllerRevisions.
func Indexes() []cache.Index {
	return []cache.Index{cache.ByController, cache.Orphans, cache.OrphansByLabel}
}

// Claims reads the revisions of the owner from the cache, and those it could
// adopt, and sorts out which are its own.
func Claims(indexer toolscache.Indexer, owner metav1.Object, selector labels.Selector) (ownership.Claims[*appsv1.ControllerRevision], error) {
	owned, err := cache.Controlled[appsv1.ControllerRevision](indexer, owner.GetNamespace(), owner.GetUID())
	if err != nil {
		return ownership.Claims[*appsv1.ControllerRevision]{}, err
	}
	orphans, err := cache.Adoptable[appsv1.ControllerRevision](indexer, owner.GetNamespace(), selector)
	if err != nil {
		return ownership.Claims[*appsv1.ControllerRevision]{}, err
	}
	return ownership.Claim(owner, selector, slices.Concat(owned, orphans)), nil
}

// Sorted returns the revisions from the first to the latest.
func Sorted(history []*appsv1.ControllerRevision) []*appsv1.ControllerRevision {
	return slices.SortedFunc(slices.Values(history), func(a, b *appsv1.ControllerRevision) int {
		return cmp.Or(cmp.Compare(a.Revision, b.Revision),
			a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

// Next is the number after those of the history; 1 after none.
func Next(history []*appsv1.ControllerRevision) int64 {
	var last int64
	for _, revision := range history {
		last = max(last, revision.Revision)
	}
	return last + 1
}

// Holding returns the revisions that hold this data, in the order given.
func Holding(history []*appsv1.ControllerRevision, data []byte, byMeaning bool) []*appsv1.ControllerRevision {
	var found []*appsv1.ControllerRevision
	for _, revision := range history {
		if Same(revision.Data.Raw, data, byMeaning) {
			found = append(found, revision)
		}
	}
	return found
}

// Obsolete returns the revisions to delete so that no more than limit are left,
// first ones first. Those in use stay, and count.
func Obsolete(history []*appsv1.ControllerRevision, limit int, inUse func(*appsv1.ControllerRevision) bool) []*appsv1.ControllerRevision {
	excess := len(history) - max(limit, 0)
	var gone []*appsv1.ControllerRevision
	for _, revision := range Sorted(history) {
		if len(gone) >= excess {
			break
		}
		if !inUse(revision) {
			gone = append(gone, revision)
		}
	}
	return gone
}
