// Package garbagecollector deletes objects whose owners are gone, deletes the
// dependents of objects that wait for them (foregroundDeletion), and frees the
// dependents of objects that are deleted without them (orphan).
//
// It reads, through pkg/informers/monitor, the metadata of every resource that can be
// listed, watched and deleted. It deletes objects, takes owner references off
// them or unblocks these, and takes the two finalizers off that are its own. It
// writes nothing else.
//
// The graph says what to look at, never what to do: an object is deleted only
// after a live look at each owner that is not known for sure to be gone, and only
// in the version that was found, by UID and resource version. An owner is gone
// for sure when its deletion was seen, or when the API server has just said that
// it is not where the reference says. A kind that is not served, an answer that
// is not about the object, and one that its watch contradicts, are no proof: what
// depends on it waits. An owner that goes without its dependents waits until all
// that may hold one can be read.
//
// Where to look: graph.go has who owns whom, view.go what is known of one object,
// observe.go what is read live, decide.go and plan.go what follows, which is pure, and
// collector.go what becomes of a key.
package garbagecollector
