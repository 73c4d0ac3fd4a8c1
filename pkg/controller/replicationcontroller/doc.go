// Package replicationcontroller runs ReplicationControllers, the older form of
// ReplicaSets: it keeps as many pods of each as it asks for.
//
// The rules are in pkg/workload/replicas, which ReplicaSets share. This package says what
// is particular to ReplicationControllers: which events wake one
// (controller.go), how one is read (adapter.go) and how its status is written
// (status.go).
//
// It reads ReplicationControllers and pods; it writes pods, the status of
// ReplicationControllers and events. It never changes the spec of a
// ReplicationController, nor its owner.
package replicationcontroller
