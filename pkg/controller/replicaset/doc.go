// Package replicaset runs ReplicaSets: it keeps as many pods of each as it asks
// for.
//
// The rules are in pkg/workload/replicas, which ReplicationControllers share: how many
// pods to make or delete (plan.go), which go first (victims.go), what the status
// says (status.go). This package says what of that is particular to ReplicaSets:
// which events wake one (controller.go), how one is read (adapter.go) and how its
// status is written (status.go).
//
// It reads ReplicaSets and pods; it writes pods, the status of ReplicaSets and
// events. It never changes the spec of a ReplicaSet, nor its owner: how many
// replicas there should be is up to users, Deployments and autoscalers.
package replicaset
