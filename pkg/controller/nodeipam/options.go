package nodeipam

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"

	netutils "k8s.io/utils/net"
)

// The mask sizes of blocks when no flag gives one.
const (
	defaultMaskIPv4 = 24
	defaultMaskIPv6 = 64
)

// Options say what nodes get.
type Options struct {
	// Ranges are the cluster CIDRs, in the order in which a node has them.
	Ranges []Range
	// Services are withheld.
	Services []netip.Prefix
}

// Flags are the flags that the options come from; a mask size of 0 is not set.
type Flags struct {
	ClusterCIDR, ServiceCIDR, SecondaryServiceCIDR string
	Mask, MaskIPv4, MaskIPv6                       int32
}

// Options returns what the flags say. They have been checked when the process began.
func (f Flags) Options() (Options, error) {
	var o Options
	clusters, err := netutils.ParseCIDRs(strings.Split(strings.TrimSpace(f.ClusterCIDR), ","))
	if err != nil {
		return o, fmt.Errorf("--cluster-cidr=%s: %w", f.ClusterCIDR, err)
	}
	for _, cluster := range clusters {
		r := Range{prefixOf(cluster), f.mask(cluster)}
		if r.NodeMask < r.CIDR.Bits() || r.NodeMask > r.CIDR.Addr().BitLen() {
			return o, fmt.Errorf("--cluster-cidr=%s cannot be cut into blocks with a mask size of %d", cluster, r.NodeMask)
		}
		o.Ranges = append(o.Ranges, r)
	}
	if len(o.Ranges) == 0 {
		return o, errors.New("--cluster-cidr is empty")
	}
	for _, services := range []string{f.ServiceCIDR, f.SecondaryServiceCIDR} {
		if services == "" {
			continue
		}
		_, parsed, err := netutils.ParseCIDRSloppy(services)
		if err != nil {
			return o, fmt.Errorf("--service-cluster-ip-range: %w", err)
		}
		o.Services = append(o.Services, prefixOf(parsed))
	}
	return o, nil
}

// mask is the mask size of the blocks of a cluster CIDR.
func (f Flags) mask(cluster *net.IPNet) int {
	own, usual := f.MaskIPv4, defaultMaskIPv4
	if netutils.IsIPv6CIDR(cluster) {
		own, usual = f.MaskIPv6, defaultMaskIPv6
	}
	switch {
	case own != 0:
		return int(own)
	case f.Mask != 0:
		return int(f.Mask)
	}
	return usual
}

// prefixOf returns the same range in another form. A parser gave it, so it has no host
// bits, and an IPv4 address has four bytes.
func prefixOf(n *net.IPNet) netip.Prefix {
	address, _ := netip.AddrFromSlice(n.IP)
	bits, _ := n.Mask.Size()
	return netip.PrefixFrom(address, bits)
}
