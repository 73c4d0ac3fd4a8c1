// Package e2e proves the built binary in whole clusters: the story of make run,
// a change of binary in both directions, a rollout beside the original, a day
// with each kind of workload, and every refused command line.
//
// Tests run side by side, each in a cluster of its own, as they wait for most of
// their time. Those that measure, and the show, come first, one after the other.
package e2e
