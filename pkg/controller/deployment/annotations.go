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
	return differing(d.Annotations, set.Annotations, own...)
}

// differing are those of the wanted ones, but for some, that are not there yet.
func differing(want, has map[string]string, but ...string) map[string]string {
	differ := map[string]string{}
	for key, value := range want {
		if is, ok := has[key]; (!ok || is != value) && !slices.Contains(but, key) {
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
	return differing(scaleNotes(d), set.Annotations)
}

// note reads a scale note; one that is missing or not a number of pods is not there.
func note(set *appsv1.ReplicaSet, key string) (int32, bool) {
	n, err := strconv.ParseUint(set.Annotations[key], 10, 31)
	return int32(n), err == nil
}
