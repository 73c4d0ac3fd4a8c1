// Package shadow compares what the controllers of this process would write with what
// another, running controller manager does.
//
// The controllers run as always, on caches that show what the running manager writes.
// What a plan would write is kept back by the actor (act.Shadow) and becomes a wish of its
// key here. Each reconcile of the key says which wishes it still has:
//
//   - one that the key has no more is agreed, once the key has been without it for a moment:
//     the running manager has done it, or nobody needs it any more;
//   - one in whose place the key wishes something else about an object that has changed
//     meanwhile, or whose key could not be planned for again, is overtaken, and counts
//     neither way;
//   - one that the key has still at the end of the window is extra: we would have written,
//     and the running manager has not.
//
// A key with open wishes is reconciled at its next change, and at the end of the window.
//
// The other way round, writes of the running manager are seen in the managed fields of
// objects as the caches get them. Such a write is foreseen when a key has had a wish like it
// within the window, and late when it was seen first, which proves nothing: the running
// manager may have been faster. Writes of one sort that were never foreseen, many times, or
// whose controller does not run here, are missed.
//
// Where to look: wish.go says what a wish is, ledger.go keeps those of the keys, seen.go
// what the running manager writes, and report.go says what has come of it.
package shadow
