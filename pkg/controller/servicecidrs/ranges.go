package servicecidrs

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
)

// managedBy is the value of the label that the API server puts on the addresses it hands out.
const managedBy = "ipallocator.k8s.io"

// The lengths of the blocks by which addresses are indexed, in bits.
var (
	blockBits4 = []int{8, 16, 24}
	blockBits6 = []int{0, 64, 72, 80, 88, 96, 104, 112, 120}
)

var (
	// deleted finds the ServiceCIDRs that are being deleted, under cache.Yes.
	deleted = cache.NewIndex("deletedServiceCIDRs", func(object any) ([]string, error) {
		if cidr, ok := object.(*networkingv1.ServiceCIDR); ok && cidr.DeletionTimestamp != nil {
			return []string{cache.Yes}, nil
		}
		return nil, nil
	})
	// handedOut finds the addresses that the API server handed out by their blocks.
	handedOut = cache.NewIndex("handedOutAddresses", indexValues)
)

// indexValues are the blocks that the address of an object is in.
func indexValues(object any) ([]string, error) {
	ip, ok := object.(*networkingv1.IPAddress)
	if !ok {
		return nil, nil
	}
	address, ok := addressOf(ip)
	if !ok {
		return nil, nil
	}
	var values []string
	for _, bits := range bitsFor(address) {
		values = append(values, block(address, bits))
	}
	return values, nil
}

// addressOf is the address of an object that the API server handed out for a
// Service, as its labels say.
func addressOf(ip *networkingv1.IPAddress) (netip.Addr, bool) {
	if ip == nil || ip.Labels[networkingv1.LabelManagedBy] != managedBy {
		return netip.Addr{}, false
	}
	address, err := netip.ParseAddr(ip.Name)
	if err != nil {
		return netip.Addr{}, false
	}
	family := corev1.IPv6Protocol
	if address.Is4() {
		family = corev1.IPv4Protocol
	}
	return address, ip.Labels[networkingv1.LabelIPAddressFamily] == string(family)
}

// rangesOf are the CIDRs of a ServiceCIDR; the API server takes no others than valid ones.
func rangesOf(cidr *networkingv1.ServiceCIDR) []netip.Prefix {
	var ranges []netip.Prefix
	for _, text := range cidr.Spec.CIDRs {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			ranges = append(ranges, prefix.Masked())
		}
	}
	return ranges
}

// contains reports whether all of inner is in outer.
func contains(outer, inner netip.Prefix) bool {
	return outer.Bits() <= inner.Bits() && outer.Contains(inner.Addr())
}

// overlap reports whether any two of the ranges have an address in common.
func overlap(some, others []netip.Prefix) bool {
	return slices.ContainsFunc(some, func(a netip.Prefix) bool { return slices.ContainsFunc(others, a.Overlaps) })
}

func bitsFor(address netip.Addr) []int {
	if address.Is4() {
		return blockBits4
	}
	return blockBits6
}

// blocks are the index values that hold all addresses of a range: those of the
// blocks that it consists of, or of the one that it is in.
func blocks(prefix netip.Prefix) []string {
	around := 0
	for _, bits := range bitsFor(prefix.Addr()) {
		switch more := bits - prefix.Bits(); {
		case more < 0:
			around = bits
		case more <= 8:
			return inside(prefix, bits)
		}
	}
	return []string{block(prefix.Addr(), around)}
}

// inside are the blocks of a length, a multiple of 8 that is at most 8 above that
// of the range, which the range consists of.
func inside(prefix netip.Prefix, bits int) []string {
	bytes := prefix.Masked().Addr().AsSlice()
	values := make([]string, 0, 1<<(bits-prefix.Bits()))
	for range cap(values) {
		address, _ := netip.AddrFromSlice(bytes)
		values = append(values, block(address, bits))
		bytes[max(bits/8-1, 0)]++
	}
	return values
}

func block(address netip.Addr, bits int) string {
	return netip.PrefixFrom(address, bits).Masked().String()
}
