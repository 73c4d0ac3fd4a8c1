package daemonset

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/revisions"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

var kind = appsv1.SchemeGroupVersion.WithKind("DaemonSet")

// hashLabel is on revisions and pods; both carry the hash of the template.
const hashLabel = appsv1.DefaultDaemonSetUniqueLabelKey

// lineage is what the revisions of a set are to its present template.
type lineage struct {
	// current holds the present template; nil if none does yet.
	current *appsv1.ControllerRevision
	// duplicates hold it too, and came before.
	duplicates []*appsv1.ControllerRevision
	old        []*appsv1.ControllerRevision
	// number is what the current revision is to have at least.
	number int64
}

func lineageOf(data []byte, mine []*appsv1.ControllerRevision) lineage {
	l := lineage{}
	holding := revisions.Sorted(revisions.Holding(mine, data, false))
	for _, revision := range mine {
		if !slices.Contains(holding, revision) {
			l.old = append(l.old, revision)
		}
	}
	l.number = revisions.Next(l.old)
	if n := len(holding); n > 0 {
		l.current, l.duplicates = holding[n-1], holding[:n-1]
	}
	return l
}

// newRevision is the revision for the present template of the set.
func newRevision(ds *appsv1.DaemonSet, hash string, data []byte, number int64) *appsv1.ControllerRevision {
	labels := maps.Clone(ds.Spec.Template.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[hashLabel] = hash
	return &appsv1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Name: ds.Name + "-" + hash, Namespace: ds.Namespace,
			Labels: labels, Annotations: maps.Clone(ds.Annotations),
			OwnerReferences: []metav1.OwnerReference{*ownership.ControllerRef(ds, kind)},
		},
		Data: runtime.RawExtension{Raw: data}, Revision: number,
	}
}

// afterCollision is the status that leads to another hash.
func afterCollision(status appsv1.DaemonSetStatus) appsv1.DaemonSetStatus {
	status.CollisionCount = ptr.To(ptr.Deref(status.CollisionCount, 0) + 1)
	return status
}

// keeps is how many old revisions the set wants kept.
func keeps(ds *appsv1.DaemonSet) int { return int(ptr.Deref(ds.Spec.RevisionHistoryLimit, 10)) }

func collisions(ds *appsv1.DaemonSet) int32 { return ptr.Deref(ds.Status.CollisionCount, 0) }
