package endpoints

//lint:file-ignore SA1019 the old API is what this controller keeps

import (
	"math"

	corev1 "k8s.io/api/core/v1"
)

// maxAddresses is how many addresses one Endpoints object may hold.
const maxAddresses = 1000

// truncated returns the subsets with at most limit addresses in all, and whether
// any was left out. Ready addresses go before those that are not ready; each
// subset keeps its share of what there is room for, rounded up, and a subset
// that keeps nothing is dropped. The subsets given are not changed.
func truncated(subsets []corev1.EndpointSubset, limit int) ([]corev1.EndpointSubset, bool) {
	ready, notReady := count(subsets)
	if ready+notReady <= limit {
		return subsets, false
	}
	kept := make([]corev1.EndpointSubset, 0, len(subsets))
	if ready > limit {
		room := limit
		for _, subset := range subsets {
			subset.Addresses = subset.Addresses[:share(len(subset.Addresses), ready, limit, room)]
			subset.NotReadyAddresses = nil
			room -= len(subset.Addresses)
			kept = appendUnlessEmpty(kept, subset)
		}
		return kept, true
	}
	left := limit - ready
	room := left
	for _, subset := range subsets {
		subset.NotReadyAddresses = subset.NotReadyAddresses[:share(len(subset.NotReadyAddresses), notReady, left, room)]
		room -= len(subset.NotReadyAddresses)
		kept = appendUnlessEmpty(kept, subset)
	}
	return kept, true
}

// share is how many of the n of total addresses fit when only limit do and room is left.
func share(n, total, limit, room int) int {
	return min(int(math.Ceil(float64(n)/float64(total)*float64(limit))), room, n)
}

func appendUnlessEmpty(subsets []corev1.EndpointSubset, subset corev1.EndpointSubset) []corev1.EndpointSubset {
	if len(subset.Addresses)+len(subset.NotReadyAddresses) == 0 {
		return subsets
	}
	return append(subsets, subset)
}

func count(subsets []corev1.EndpointSubset) (ready, notReady int) {
	for i := range subsets {
		ready += len(subsets[i].Addresses)
		notReady += len(subsets[i].NotReadyAddresses)
	}
	return ready, notReady
}
