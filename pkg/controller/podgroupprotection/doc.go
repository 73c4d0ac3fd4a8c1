// Package podgroupprotection keeps a PodGroup that is being deleted until no
// pod needs it: it takes the finalizer that the API server gives every PodGroup
// away once all pods of the group have ended or are gone.
//
// It reads PodGroups and, by an index, the pods that name one. It writes the
// finalizers of PodGroups that are being deleted, and nothing else: it adds no
// finalizer and deletes nothing.
package podgroupprotection
