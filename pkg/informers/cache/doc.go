// Package cache holds what all controllers share of the informer caches: the
// trims that keep only what some controller reads, and the indexes that make a
// lookup cost what it returns.
//
// A cached object is shared and read-only. It is without its managed fields, and
// pods, nodes and ResourceSlices are trimmed further, so one is never sent back
// whole: patch it, write a subresource whose object is complete in the cache, or
// read it live first.
package cache
