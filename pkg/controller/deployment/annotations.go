package deployment

import (
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

const (
	revisionAnnotation = "deployment.kubernetes.io/revision"
	historyAnnotation  = "deployment.kubernetes.io/revision-history"
	desiredAnnotation  = "deployment.kubernetes.io/desired-replicas"
	mostAnnotation     = "deployment.kubernetes.io/max-replicas"
)

// own are the annotations that mean something else on a Deployment than on its
// ReplicaSets; they are not copied from one to the other.
var own = []string{
	corev1.LastAppliedConfigAnnotation,
	revisionAnnotation, historyAnnotation,
	desiredAnnotation, mostAnnotation,
	appsv1.DeprecatedRollbackTo,
}

// copied returns those annotations of the Deployment that the ReplicaSet has to
// get. One that is taken off the Deployment stays on the set.
func copied(d *appsv1.Deployment, set *appsv1.ReplicaSet) map[string]string {
	differ := map[string]string{}
	for key, value := range d.Annotations {
		if has, ok := set.Annotations[key]; (!ok || has != value) && !slices.Contains(own, key) {
			differ[key] = value
		}
	}
	return differ
}

// scaleNotes are written on a set whenever it is scaled: what the Deployment
// asked for then, and how many pods it allowed. Proportional scaling reads them.
func scaleNotes(d *appsv1.Deployment) map[string]string {
	return map[string]string{
		desiredAnnotation: strconv.Itoa(int(wanted(d))),
		mostAnnotation:    strconv.Itoa(int(mostTotal(d))),
	}
}

// notesToChange returns the scale notes that the set does not have yet.
func notesToChange(d *appsv1.Deployment, set *appsv1.ReplicaSet) map[string]string {
	differ := map[string]string{}
	for key, value := range scaleNotes(d) {
		if has, ok := set.Annotations[key]; !ok || has != value {
			differ[key] = value
		}
	}
	return differ
}

// note reads a scale note; one that is missing or not a number of pods is not there.
func note(set *appsv1.ReplicaSet, key string) (int32, bool) {
	n, err := strconv.ParseUint(set.Annotations[key], 10, 31)
	return int32(n), err == nil
}
