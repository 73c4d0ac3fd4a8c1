// Package persistentvolumeprotection keeps a PersistentVolume that is bound to a claim
// from being deleted: it gives every volume the finalizer kubernetes.io/pv-protection,
// and takes it off one that is being deleted as soon as it is not bound.
//
// It reads volumes from the cache alone; an update in vain is refused, since it names
// the version that was looked at. It writes the finalizer and nothing else. What is
// behind a volume is not its concern.
package persistentvolumeprotection
