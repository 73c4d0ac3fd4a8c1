package statefulset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// Reasons of events, and the word that their messages begin with.
var (
	succeeded = map[verb]string{create: "SuccessfulCreate", remove: "SuccessfulDelete", repair: "SuccessfulUpdate"}
	failed    = map[verb]string{create: "FailedCreate", remove: "FailedDelete", repair: "FailedUpdate"}
	word      = map[verb]string{create: "Create", remove: "Delete", repair: "Update"}
)

// tell records what became of a pod.
func (c *Controller) tell(set *appsv1.StatefulSet, v verb, pod *corev1.Pod, err error) {
	if err == nil {
		c.events.Eventf(set, corev1.EventTypeNormal, succeeded[v], "%s Pod %s in StatefulSet %s successful", word[v], pod.Name, set.Name)
		return
	}
	c.events.Eventf(set, corev1.EventTypeWarning, failed[v], "%s Pod %s in StatefulSet %s failed error: %s", word[v], pod.Name, set.Name, err)
}

// tellDisputed records which claims the set's retention policy cannot reach. The
// wording is the original's, to the letter.
func (c *Controller) tellDisputed(set *appsv1.StatefulSet, claims []string) {
	for _, claim := range claims {
		c.events.Eventf(set, corev1.EventTypeWarning, "ConflictingController",
			"PersistentVolumeClaim %s has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim", claim)
	}
}
