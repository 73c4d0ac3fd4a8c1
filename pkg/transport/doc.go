// Package transport is what lies between the clients of the process and the API
// server.
//
// It lets the process outlast an API server that is away, or that refuses for a
// while: reads of caches wait while nobody listens (Reads), watches that end at once
// are opened ever more rarely, and what a start asks for is asked again when the
// refusal is one that passes (Try).
//
// It lets writes end that were sent before a stop, and sends none after it, nor
// behind the fence of leader election (Finishing).
//
// It makes the watches of the caches cheap (Caches). Before a watch event becomes an
// object, the bytes of the fields that cache.Trim would drop are cut out of it: they
// are then neither allocated nor collected. The connections that bring the events are
// read at intervals, those of heartbeats at longer ones. All of it only saves work;
// what a cached object holds is for cache.Trim alone to say, and bytes that are not
// understood are passed on as they came.
//
// It asks for no more of the answers to writes of pods than is used (PodMetadata).
package transport
