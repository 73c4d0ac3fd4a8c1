package deployment

import (
	"cmp"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// longestHistory bounds the characters of the list of former revisions.
const longestHistory = 2000

// revisionOf reads the revision annotation; none is revision 0.
func revisionOf(o metav1.Object) (int64, error) {
	value, ok := o.GetAnnotations()[revisionAnnotation]
	if !ok {
		return 0, nil
	}
	return strconv.ParseInt(value, 10, 64)
}

// topRevisions returns the highest revision and the one below it; sets whose
// revision cannot be read are passed over.
func topRevisions(sets []*appsv1.ReplicaSet) (highest, second int64) {
	for _, set := range sets {
		switch n, err := revisionOf(set); {
		case err != nil:
		case n >= highest:
			highest, second = n, highest
		case n > second:
			second = n
		}
	}
	return highest, second
}

func highestRevision(sets []*appsv1.ReplicaSet) int64 {
	highest, _ := topRevisions(sets)
	return highest
}

// promoted returns the annotations that make the set the one of this revision,
// with the revision it had added to its history. A set whose annotation is not a
// number was changed by someone else and is left alone, also where the
// Deployment's annotations are concerned.
func promoted(d *appsv1.Deployment, set *appsv1.ReplicaSet, revision int64) map[string]string {
	former, has := set.Annotations[revisionAnnotation]
	number := int64(0)
	if former != "" {
		var err error
		if number, err = strconv.ParseInt(former, 10, 64); err != nil {
			return nil
		}
	}
	change := copied(d, set)
	if number >= revision {
		return change
	}
	change[revisionAnnotation] = strconv.FormatInt(revision, 10)
	if has {
		if history, ok := appended(set.Annotations[historyAnnotation], former); ok {
			change[historyAnnotation] = history
		}
	}
	return change
}

// appended adds a revision to a comma list and drops as many of the oldest as
// the limit demands.
func appended(history, revision string) (string, bool) {
	if history == "" || history[0] == ',' {
		return revision, true
	}
	for len(history)+1+len(revision) > longestHistory {
		_, rest, more := strings.Cut(history, ",")
		if !more {
			return revision, len(revision) <= longestHistory
		}
		history = rest
	}
	return history + "," + revision, true
}

// obsolete returns the old sets that the history limit leaves no room for, lowest
// revision first. One that has or asks for pods, or whose latest change has not
// been observed, still counts and stays.
func obsolete(d *appsv1.Deployment, old []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	limit, limited := historyLimit(d)
	if !limited {
		return nil
	}
	var alive, remove []*appsv1.ReplicaSet
	for _, set := range old {
		if set.DeletionTimestamp == nil {
			alive = append(alive, set)
		}
	}
	if len(alive) <= limit {
		return nil
	}
	for _, set := range sortedBy(alive, byRevision)[:len(alive)-limit] {
		if size(set) == 0 && set.Status.Replicas == 0 && set.Generation <= set.Status.ObservedGeneration {
			remove = append(remove, set)
		}
	}
	return remove
}

func historyLimit(d *appsv1.Deployment) (int, bool) {
	limit := ptr.Deref(d.Spec.RevisionHistoryLimit, noLimit)
	return int(max(limit, 0)), limit != noLimit
}

func byRevision(a, b *appsv1.ReplicaSet) int {
	x, errX := revisionOf(a)
	y, errY := revisionOf(b)
	if errX != nil || errY != nil {
		return byAge(a, b)
	}
	return cmp.Or(cmp.Compare(x, y), byAge(a, b))
}
