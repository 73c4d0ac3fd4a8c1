// Package persistentvolumeclaimprotection keeps a PersistentVolumeClaim that a pod uses
// from being deleted: it gives every claim the finalizer kubernetes.io/pvc-protection,
// and takes it off one that is being deleted as soon as no pod on a node uses it.
//
// A pod that has ended uses its claims until its object is gone, since its node may
// still unmount them; one without a node never does. No finalizer is taken off because
// of a cache alone: the pods of the namespace are listed live first, once for all the
// claims that wait for the same answer.
//
// With the gate PersistentVolumeClaimUnusedSinceTime it also writes the condition Unused
// of claims that nobody deletes. It writes finalizers and that condition, nothing else.
package persistentvolumeclaimprotection
