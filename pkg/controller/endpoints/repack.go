package endpoints

//lint:file-ignore SA1019 the old API is what this controller keeps

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/services"
)

// repacked returns subsets that offer the same as this controller would have
// packed them: each port once with all of its addresses, ports of the same
// addresses together, in the one order. The subsets given are not changed.
func repacked(subsets []corev1.EndpointSubset) []corev1.EndpointSubset {
	all := services.PerPort(subsets)
	for i := range all {
		all[i].Addresses, all[i].NotReadyAddresses = each(all[i].Addresses), each(all[i].NotReadyAddresses)
	}
	return sorted(services.Together(all, services.SameAddresses(all)))
}

// each returns the addresses without repetitions and without the resource
// versions of their pods, in the order of sorted.
func each(addresses []corev1.EndpointAddress) []corev1.EndpointAddress {
	addresses = slices.Clone(addresses)
	for i := range addresses {
		if ref := addresses[i].TargetRef; ref != nil && ref.ResourceVersion != "" {
			bare := *ref
			bare.ResourceVersion = ""
			addresses[i].TargetRef = &bare
		}
	}
	slices.SortStableFunc(addresses, func(a, b corev1.EndpointAddress) int {
		if by := services.CompareAddresses(a, b); by != 0 {
			return by
		}
		return cmp.Compare(services.AddressKey(a), services.AddressKey(b))
	})
	return slices.CompactFunc(addresses, func(a, b corev1.EndpointAddress) bool { return equality.DeepEqual(a, b) })
}
