// Package monitor watches every resource that the API server serves, for the
// controllers that look after objects of any kind: garbage collection, quota.
//
// A Set follows discovery and keeps one watch for each resource that somebody is
// interested in. Where a controller caches the resource whole, that cache is
// used; all others are held as metadata only, so that memory goes by the number
// of objects and not by their size.
//
// What it promises: a resource that cannot be listed, or a group that cannot be
// discovered, holds up no other; what is broken is named with its error and the
// time since when it is; an object is reported as deleted only when the watch
// or a list says so, never because its API does not answer or is gone.
package monitor
