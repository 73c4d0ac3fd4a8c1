// Package persistentvolumebinder binds claims to volumes, has volumes provisioned
// for claims that none fits, and reclaims the volumes that their claims have left.
//
// It keeps true: a claim and a volume that name each other are both Bound; a volume
// that waits for a claim is Available; one whose claim is gone is Released, and then
// retained, deleted or recycled as its policy says; a bound claim whose volume is gone
// is Lost. It writes the claimRef, annotations, finalizers and status of volumes, and
// the volumeName, class, annotations and status of claims. It reads pods, nodes and
// classes. It never binds one volume to two claims, takes a volume from a claim that has
// it, or changes a volumeName that is set.
//
// Three loops work side by side: claims (claim.go), volumes (volume.go), and operations of
// plugins (perform.go). The pool (pool.go) knows the newest state of all volumes, those of
// our own writes included. It finds the volume for a claim by class, modes and size, and
// lends each volume to one key at a time: so a volume has one writer, its choice is made
// once, and claims are worked on side by side. What is being worked on is given back at
// the end of the reconcile, which wakes those who have asked for it meanwhile.
//
// # Plugins
//
// What a built-in plugin does with a backend is behind [Plugins] and [Plugin]
// (plugins.go), which come in with [Options]. All else is here: who is asked
// (deletionOf and provisioningOf), what is looked at live before (released), finalizers,
// the volume that is created (volumeFor), and the event of a failure: it has
// the error of Delete, Recycle or Provision as it is. Without plugins none matches any volume
// or provisioner.
package persistentvolumebinder
