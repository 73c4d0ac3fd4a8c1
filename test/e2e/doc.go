// Package e2e proves the built binary in whole clusters: the story of make run,
// a change of binary in both directions, a rollout beside the original, and
// every refused command line.
//
// The tests run one after the other: they measure times on a small machine.
package e2e
