// Package namespace empties a namespace that is being deleted, tells in its
// conditions what is in the way, and takes off the kubernetes finalizer when
// nothing is left.
//
// It reads namespaces, discovery, and the metadata of everything in a terminating
// namespace; it deletes that content in the background, pods before all else,
// and writes the status and the finalizers of the namespace. It touches nothing
// in a namespace that a live read does not show as terminating, and it takes off
// the finalizer only when a list of every kind, found by a discovery that was
// complete and made during the same pass, came back empty.
//
// An empty kind costs one list a pass, and objects whose deletion is already
// under way are not deleted again.
package namespace
