// Package compare holds "behaves the same" as a test: every story of
// test/scenarios is put under the reference binary and under ours, each on a
// control plane of its own, and what was recorded is compared.
//
// What a story leaves behind becomes a Record (record.go), in which everything
// that differs between two runs of the same binary has been levelled
// (normalise.go). Compare (diff.go) turns two records into findings; the ones
// that accepted.yaml explains do not count (accepted.go). Beside it stands what
// needs no story: flags, configuration, metrics and health checks (static.go).
// All of that is pure; only the tests start processes.
package compare
