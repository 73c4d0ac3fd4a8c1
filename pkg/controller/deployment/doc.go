// Package deployment keeps a Deployment's pods on its current pod template, by
// way of one ReplicaSet for each template it has had.
//
// What it promises: the newest template has exactly one ReplicaSet; a rolling
// update keeps at least replicas-maxUnavailable pods available and asks for at
// most replicas+maxSurge pods, whatever the order in which caches show things;
// Recreate starts no new pod before the last old one is gone; a Deployment that
// is scaled in the middle of a rollout spreads the change over its ReplicaSets.
//
// It reads Deployments, ReplicaSets and, for Recreate only, pods. It writes
// ReplicaSets (create, scale, annotate, adopt, release, delete beyond the history
// limit), a Deployment's status and revision annotation in one request at the
// end of a sync, and a Deployment's template only on a rollback that its owner
// asked for by annotation. It never touches pods, and never the status of a
// ReplicaSet.
//
// Where the field's customary behaviour leaves a Deployment stuck or breaks a
// promise, this package does otherwise: ReplicaSets whose size is right and whose
// note of the wanted size is not have the note corrected; Recreate retires old
// ReplicaSets also while several of them have pods and the Deployment is scaled,
// and starts nothing beside old pods in a pause or for a rollback; and a status
// that is older than a ReplicaSet's size frees no pods.
//
// observe.go reads the caches, plan.go says in which order the questions are asked,
// steps.go what is written, and controller.go and watch.go what wakes a Deployment.
// Each further file answers one question. All but observing and waking is pure.
package deployment
