// Package disruption keeps the status of PodDisruptionBudgets, from which the
// API server decides whether a pod may be evicted.
//
// What it keeps true: a budget says how many pods it expects, how many of them
// are healthy and should be, and how many may go. What cannot be computed or
// written allows no eviction. An eviction that was allowed counts against the
// budget until the pod is being deleted, for two minutes at most. The condition
// DisruptionTarget of a pod that is still there after two minutes is set to
// false.
//
// It reads budgets, pods and what controls them: from caches where the kind is
// built in, else through the scale subresource, at most once a second for each
// owner, and once more after the last change. It writes the status of budgets,
// the condition DisruptionTarget of pods, and events.
//
// Where to look: expected.go says how many pods are expected, plan.go what the
// status is, changes.go which changes of pods count and which of them may wait,
// stale.go when a condition is out of date; these are pure. observe.go reads.
package disruption
