package endpoints

//lint:file-ignore SA1019 the old API is what this controller keeps

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// repacked returns subsets that offer the same as this controller would have
// packed them: each port once with all of its addresses, ports of the same
// addresses together, in the one order. The subsets given are not changed.
func repacked(subsets []corev1.EndpointSubset) []corev1.EndpointSubset {
	byPort, order := unpacked(subsets)
	var packed []corev1.EndpointSubset
	at := map[string]int{}
	for _, key := range order {
		subset := byPort[key]
		subset.Addresses, subset.NotReadyAddresses = each(subset.Addresses), each(subset.NotReadyAddresses)
		by := names(subset.Addresses) + "|" + names(subset.NotReadyAddresses)
		if i, ok := at[by]; ok {
			packed[i].Ports = append(packed[i].Ports, subset.Ports...)
			continue
		}
		at[by] = len(packed)
		packed = append(packed, *subset)
	}
	return sorted(packed)
}

// unpacked returns what is offered on each port, and the ports as they came.
func unpacked(subsets []corev1.EndpointSubset) (map[portKey]*corev1.EndpointSubset, []portKey) {
	byPort := map[portKey]*corev1.EndpointSubset{}
	var order []portKey
	add := func(port *corev1.EndpointPort, from *corev1.EndpointSubset) {
		key := keyOf(port)
		all := byPort[key]
		if all == nil {
			all = &corev1.EndpointSubset{}
			if port != nil {
				all.Ports = []corev1.EndpointPort{*port}
			}
			byPort[key] = all
			order = append(order, key)
		}
		all.Addresses = append(all.Addresses, from.Addresses...)
		all.NotReadyAddresses = append(all.NotReadyAddresses, from.NotReadyAddresses...)
	}
	for i := range subsets {
		if len(subsets[i].Ports) == 0 {
			add(nil, &subsets[i])
		}
		for j := range subsets[i].Ports {
			add(&subsets[i].Ports[j], &subsets[i])
		}
	}
	return byPort, order
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
		return cmp.Or(compareAddresses(a, b), cmp.Compare(name(a), name(b)))
	})
	return slices.CompactFunc(addresses, func(a, b corev1.EndpointAddress) bool { return equality.DeepEqual(a, b) })
}

func names(addresses []corev1.EndpointAddress) string {
	var all strings.Builder
	for i := range addresses {
		all.WriteString(name(addresses[i]))
		all.WriteByte(',')
	}
	return all.String()
}

// name is an address as a string: two that differ have different ones.
func name(a corev1.EndpointAddress) string {
	node := ""
	if a.NodeName != nil {
		node = *a.NodeName
	}
	of := corev1.ObjectReference{}
	if a.TargetRef != nil {
		of = *a.TargetRef
	}
	return fmt.Sprintf("%q %q %q %q", a.IP, a.Hostname, node, []string{of.Kind, of.Namespace, of.Name, string(of.UID)})
}
