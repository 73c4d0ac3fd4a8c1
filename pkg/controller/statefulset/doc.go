// Package statefulset runs pods with identity: each has an ordinal, and with it
// a name, and claims of its own that outlive it.
//
// What it keeps true: there is at most one pod for an ordinal; an ordered set
// makes and takes one pod at a time and only while all others are available; a
// pod below the partition of a rolling update stays at the revision that it was
// given; a claim is owned as the set's retention policy says before its pod goes.
// A pod is deleted only as the one that was looked at, by its UID.
//
// It reads StatefulSets, pods, claims and ControllerRevisions. It writes pods
// (create, delete, and labels and owner references by patch), claims (create, and
// owner references by update, which is all its role allows), the history of the
// set (pkg/workload/revisions), the set's status, and events. It never writes a set's spec
// and never deletes a claim: the garbage collector does, by the owner references.
//
// Where to look: plan.go says what comes after what, order.go which pods are made
// and taken in which order, replica.go what a pod within the range of ordinals
// needs, rolling.go which pod an update replaces next, steps.go what is written for
// a pod, identity.go what a pod and its claims look like, retention.go who owns a
// claim, revision.go which revisions are current and wanted, status.go what is
// reported, rejected.go when pods go that their nodes rejected. All of these are
// pure; observe.go reads the caches.
package statefulset
