// Package runner is the one loop that every controller runs on.
//
// A controller brings a name, its watches and a reconcile. The runner owns the rest:
// the named rate-limited queue, the workers, the four outcomes, containment of
// panics, retry with backoff, the check that the caches have seen what the key
// wrote, drain on stop, a span for each reconcile, the health check for a
// worker that is stuck, and the snapshot that the debug endpoint shows.
//
// What it promises: a key is never reconciled by two workers at once; an event
// during a reconcile leads to another one after it; a key whose writes the caches
// have not seen is not reconciled; an error or a panic in one key never holds up
// another.
package runner
