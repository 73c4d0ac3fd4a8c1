// Package replicas keeps a wanted number of equal pods: the engine of the
// ReplicaSet and the ReplicationController controllers, which differ only in
// the kind they read and report to.
//
// What it keeps true: a set has as many active pods as it asks for, made from
// its template and controlled by it; when there are too many, those that are
// missed least go first; the status says what is there. Pods that match the
// selector and have no controller are adopted, pods that no longer match are
// let go. Pods of another controller are never touched, however selectors
// overlap, and the pods of a deleted set are left to the garbage collector.
//
// What it writes: pods (create, delete, and owner references by patch), the
// status of the set, events on the set. It never writes a set's spec or a
// pod's spec or status.
//
// Where to look: observe.go reads the caches, plan.go says how many pods to make
// or take away, victims.go which go first, status.go what is reported. All but
// observe.go and controller.go, which wires the watches, is pure.
package replicas
