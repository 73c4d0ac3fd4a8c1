// Package namespace empties a namespace that is being deleted, says in its
// conditions what is in the way, and takes off the kubernetes finalizer when
// nothing is left.
//
// It reads namespaces, discovery, and the metadata of everything in a terminating
// namespace; it deletes that content in the background, pods before all else,
// and writes the status and the finalizers of the namespace. It touches nothing
// in a namespace that a live read does not show as terminating.
//
// What namespaces hold is found out for all of them at once. When they have had
// the time to settle, so that nothing can be created in them any more, a survey
// makes discovery and lists every kind, in the whole cluster or in each namespace,
// whichever is less. Only the kinds that a namespace holds are deleted there.
// The finalizer goes when a survey of the last half minute, with discovery
// complete, has read every kind, and every kind that held something has been
// seen empty since; what was not read is never taken for empty. A list that is
// answered with 404 or 405 was not read: discovery is asked again, and then the
// list. Only a kind that neither of them knows is served no more.
//
// A group that cannot be discovered and a kind that cannot be read hold the
// namespaces, and nothing else: all other kinds are deleted. They are asked again
// after 0.1 s, then ever more rarely up to every five seconds, and every fifteen
// after five minutes, for all namespaces together, and wake those that they held.
// Surveys and probes are keys of the queue like namespaces, "*survey" and
// "*probe", shown at the debug endpoint.
//
// Where to look: plan.go has what is done about a namespace, empty.go how a kind is
// listed and deleted, outcome.go and conditions.go what is said of it, all of them
// pure. observe.go reads, for many namespaces at once; survey.go, waiter.go and
// waiting.go have what is known of them.
package namespace
