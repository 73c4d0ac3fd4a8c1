// Package podautoscaler keeps the number of a workload's pods in line with what
// its HorizontalPodAutoscaler measures.
//
// What it promises: the number it asks for is always within the autoscaler's
// bounds; with several metrics the largest number wins, and while one of them
// fails nothing is scaled down; pods that are missing a sample or are starting
// make a change smaller and never reverse it; a change is no faster than the policies
// of its direction allow, and takes a recommendation of the stabilization window
// into account.
//
// It reads autoscalers and pods from caches, the scale of the target live by the
// scale subresource, and samples from the metrics APIs. It writes the replicas
// of that scale, in the version that was read, and the status of the
// autoscaler, if it changed. It never touches pods, nor the target itself.
//
// Recommendations and changes of the last minutes are remembered in memory
// alone, so a restart forgets them: the first recommendation after it is the
// number there is.
//
// Each autoscaler is looked at once in a sync period, and not sooner when it or
// its target changes: metrics are no younger for that. What is there when the
// process starts is spread over the first period. A look costs one read of the
// scale and one of each metric, and the pods that the target's selector matches,
// however many others there are.
package podautoscaler
