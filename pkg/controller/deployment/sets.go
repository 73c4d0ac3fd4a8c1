package deployment

import (
	"bytes"
	"cmp"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
)

// size is how many pods the ReplicaSet asks for.
func size(set *appsv1.ReplicaSet) int32 { return ptr.Deref(set.Spec.Replicas, 1) }

// resized returns the set as it is once it has been scaled. It shares
// everything else with the cached one.
func resized(set *appsv1.ReplicaSet, to int32) *appsv1.ReplicaSet {
	changed := *set
	changed.Spec.Replicas = ptr.To(to)
	return &changed
}

func sum(sets []*appsv1.ReplicaSet, of func(*appsv1.ReplicaSet) int32) int32 {
	var total int32
	for _, set := range sets {
		total += of(set)
	}
	return total
}

// active keeps the sets that ask for pods.
func active(sets []*appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	var found []*appsv1.ReplicaSet
	for _, set := range sets {
		if size(set) > 0 {
			found = append(found, set)
		}
	}
	return found
}

// with returns the sets with one more at the end; nil adds none.
func with(sets []*appsv1.ReplicaSet, set *appsv1.ReplicaSet) []*appsv1.ReplicaSet {
	all := slices.Clone(sets)
	if set != nil {
		all = append(all, set)
	}
	return all
}

func byAge(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

func byName(a, b *appsv1.ReplicaSet) int { return cmp.Compare(a.Name, b.Name) }

func largestThenNewest(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(cmp.Compare(size(b), size(a)), byAge(b, a))
}

func largestThenOldest(a, b *appsv1.ReplicaSet) int {
	return cmp.Or(cmp.Compare(size(b), size(a)), byAge(a, b))
}

// sortedBy returns the sets in another order and leaves those given alone.
func sortedBy(sets []*appsv1.ReplicaSet, order func(a, b *appsv1.ReplicaSet) int) []*appsv1.ReplicaSet {
	return slices.SortedFunc(slices.Values(sets), order)
}

// divide separates the set of the Deployment's present template from the others,
// which come oldest first. Among several with that template, which a cluster may
// have from the days before collisions were counted, the oldest is the new one.
func divide(d *appsv1.Deployment, sets []*appsv1.ReplicaSet) (newSet *appsv1.ReplicaSet, old []*appsv1.ReplicaSet) {
	for _, set := range sortedBy(sets, byAge) {
		if newSet == nil && sameTemplate(&set.Spec.Template, &d.Spec.Template) {
			newSet = set
			continue
		}
		old = append(old, set)
	}
	return newSet, old
}

// sameTemplate compares two templates without the hash that a ReplicaSet's
// carries. It is called for every ReplicaSet whenever one of them reports, and the
// answer is yes for the present one: comparing the encoded specs costs a fraction of
// walking through them when they are equal.
func sameTemplate(a, b *corev1.PodTemplateSpec) bool {
	x, y := a.ObjectMeta, b.ObjectMeta
	x.Labels, y.Labels = withoutHash(x.Labels), withoutHash(y.Labels)
	return same(&x, &y) && same(&a.Spec, &b.Spec)
}

func same(a, b encodes) bool { return sameBytes(a, b) || apiequality.Semantic.DeepEqual(a, b) }

type encodes interface{ Marshal() ([]byte, error) }

// sameBytes reports whether two things are encoded alike; some that mean the same are not.
func sameBytes(a, b encodes) bool {
	x, err := a.Marshal()
	if err != nil {
		return false
	}
	y, err := b.Marshal()
	return err == nil && bytes.Equal(x, y)
}
