// Package wire makes the watches of the caches and the answers to writes cheap.
// Before a watch event becomes an object, the bytes of the fields that cache.Trim
// would drop are cut out of it: they are then neither allocated nor collected. So are
// those of an object that was written, of which its writer uses little. The
// connections that bring the events are read in bursts, those of heartbeats in long
// ones. All of it only saves work; what a cached object holds is for cache.Trim alone
// to say, and bytes that are not understood are passed on as they came. Finishing lets
// writes end that were sent before a stop, and sends none after it.
package wire
