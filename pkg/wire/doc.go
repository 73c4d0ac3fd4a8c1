// Package wire shortens what the caches decode. Before a watch event becomes an
// object, the bytes of the fields that cache.Trim would drop are cut out of it:
// they are then neither allocated nor collected. It only saves work; what a
// cached object holds is for cache.Trim alone to say, and bytes that are not
// understood are passed on as they came. The connection of
// the caches is read in bursts, and streams of heartbeats in longer ones.
package wire
