// Package patience lets the process outlast an API server that is away, or that
// refuses for a while: reads of caches wait while nobody listens, watches that
// end at once are opened ever more rarely, and what a start asks for is asked
// again when the refusal is one that passes.
package patience
