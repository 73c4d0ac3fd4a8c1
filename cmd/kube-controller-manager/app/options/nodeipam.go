package options

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/spf13/pflag"
	netutils "k8s.io/utils/net"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

const (
	// rangeAllocator is the only allocator of pod CIDRs that is built in.
	rangeAllocator = "RangeAllocator"
	// ipv6NodesBits bounds the nodes of an IPv6 cluster CIDR to what a bitmap of
	// them may take in memory.
	ipv6NodesBits = 16
)

var nodeIPAM = section{
	controller: names.NodeIpamController,
	flags: func(fs *pflag.FlagSet, c *configuration) {
		o := &c.NodeIPAMController
		fs.Var(serviceCIDRs{&o.ServiceCIDR, &o.SecondaryServiceCIDR}, "service-cluster-ip-range",
			"The CIDR of Services, or two CIDRs, one for each IP family, separated by a comma. Nodes get no pod CIDR in it. Only used with --allocate-node-cidrs.")
		fs.Int32Var(&o.NodeCIDRMaskSize, "node-cidr-mask-size", o.NodeCIDRMaskSize,
			"The mask size of the pod CIDR of a node in a single-stack cluster. 0 means 24 for IPv4 and 64 for IPv6.")
		fs.Int32Var(&o.NodeCIDRMaskSizeIPv4, "node-cidr-mask-size-ipv4", o.NodeCIDRMaskSizeIPv4,
			"The mask size of the IPv4 pod CIDR of a node. 0 means 24.")
		fs.Int32Var(&o.NodeCIDRMaskSizeIPv6, "node-cidr-mask-size-ipv6", o.NodeCIDRMaskSizeIPv6,
			"The mask size of the IPv6 pod CIDR of a node. 0 means 64.")
	},
	check: checkNodeIPAM,
}

// serviceCIDRs is the value of a flag that sets two fields. More than two CIDRs
// stay in the second field, to be refused with everything else.
type serviceCIDRs struct {
	primary, secondary *string
}

func (v serviceCIDRs) Set(value string) error {
	*v.primary, *v.secondary, _ = strings.Cut(value, ",")
	return nil
}

func (v serviceCIDRs) String() string {
	if v.secondary == nil || *v.secondary == "" {
		return v.first()
	}
	return v.first() + "," + *v.secondary
}

func (v serviceCIDRs) first() string { return ptr.Deref(v.primary, "") }

func (serviceCIDRs) Type() string { return "string" }

func checkNodeIPAM(p *problems, s *settings) {
	o := &s.NodeIPAMController
	services := serviceCIDRs{&o.ServiceCIDR, &o.SecondaryServiceCIDR}.String()
	if strings.Count(services, ",") > 1 {
		p.addf("--service-cluster-ip-range can not contain more than two entries, got %q", services)
		services = ""
	}
	if !s.podCIDRs.allocate || !s.enabled(names.NodeIpamController) {
		return
	}
	p.serviceCIDRs(services)
	clusters, ok := p.clusterCIDRs(s.podCIDRs.clusterCIDR)
	if ok {
		p.nodeMasks(s, clusters)
	}
}

// serviceCIDRs refuses what is no CIDR, and two of the same family.
func (p *problems) serviceCIDRs(value string) {
	if value == "" {
		return
	}
	cidrs, err := netutils.ParseCIDRs(strings.Split(value, ","))
	if err != nil {
		p.with("service-cluster-ip-range", value, err)
		return
	}
	if dual, err := netutils.IsDualStackCIDRs(cidrs); len(cidrs) == 2 && (err != nil || !dual) {
		p.with("service-cluster-ip-range", value,
			errors.New("serviceCIDR and secondaryServiceCIDR are not dualstack (from different IPfamiles)"))
	}
}

// clusterCIDRs parses one CIDR, or one of each family.
func (p *problems) clusterCIDRs(value string) ([]*net.IPNet, bool) {
	cidrs, err := netutils.ParseCIDRs(strings.Split(strings.TrimSpace(value), ","))
	if err != nil {
		p.with("cluster-cidr", value, err)
		return nil, false
	}
	if len(cidrs) > 2 {
		p.addf("--cluster-cidr=%s: length of clusterCIDRs is:%d more than max allowed of 2", value, len(cidrs))
		return nil, false
	}
	if dual, err := netutils.IsDualStackCIDRs(cidrs); len(cidrs) == 2 && (err != nil || !dual) {
		p.addf("--cluster-cidr=%s: len of ClusterCIDRs==2 and they are not configured as dual stack (at least one from each IPFamily)", value)
		return nil, false
	}
	return cidrs, true
}

// family is what an IP family makes of the masks.
type family struct {
	name, flag  string
	mask        int32 // as set by the flag of the family
	usual, most int
}

// nodeMasks refuses mask sizes that do not fit the cluster CIDRs.
func (p *problems) nodeMasks(s *settings, clusters []*net.IPNet) {
	o := &s.NodeIPAMController
	four := family{"IPv4", "node-cidr-mask-size-ipv4", o.NodeCIDRMaskSizeIPv4, 24, 32}
	six := family{"IPv6", "node-cidr-mask-size-ipv6", o.NodeCIDRMaskSizeIPv6, 64, 128}
	if len(clusters) == 2 && o.NodeCIDRMaskSize != 0 {
		p.addf("--node-cidr-mask-size=%d: usage of --node-cidr-mask-size is not allowed with dual-stack clusters", o.NodeCIDRMaskSize)
		return
	}
	if given := flagsOf(four, six); o.NodeCIDRMaskSize != 0 && given != "" {
		p.addf("--node-cidr-mask-size=%d%s: usage of --node-cidr-mask-size-ipv4 and --node-cidr-mask-size-ipv6 is not allowed if --node-cidr-mask-size is set. "+
			"For dual-stack clusters please unset it and use IPFamily specific flags", o.NodeCIDRMaskSize, given)
		return
	}
	for _, cluster := range clusters {
		own, other := four, six
		if netutils.IsIPv6CIDR(cluster) {
			own, other = six, four
		}
		if len(clusters) == 1 && other.mask != 0 {
			p.addf("--%s=%d: usage of --%s is not allowed for a single-stack %s cluster", other.flag, other.mask, other.flag, own.name)
			continue
		}
		if own.mask == 0 && o.NodeCIDRMaskSize != 0 {
			own.flag, own.mask = "node-cidr-mask-size", o.NodeCIDRMaskSize
		}
		p.nodeMask(cluster, own)
	}
}

// flagsOf names the masks that are set for a family; empty if there are none.
func flagsOf(families ...family) (given string) {
	for _, f := range families {
		if f.mask != 0 {
			given += fmt.Sprintf(" --%s=%d", f.flag, f.mask)
		}
	}
	return given
}

func (p *problems) nodeMask(cluster *net.IPNet, f family) {
	mask := int(f.mask)
	if mask == 0 {
		mask = f.usual
	}
	whole, _ := cluster.Mask.Size()
	switch {
	case mask < 0 || mask > f.most:
		p.addf("--%s=%d: the mask size of an %s CIDR must be between 0 and %d", f.flag, mask, f.name, f.most)
	case whole > mask:
		p.addf("--cluster-cidr=%s --%s=%d: Controller: Invalid --cluster-cidr, mask size of cluster CIDR must be less than or equal to --node-cidr-mask-size configured for CIDR family",
			cluster, f.flag, mask)
	case f.most == 128 && mask-whole > ipv6NodesBits:
		p.addf("--cluster-cidr=%s --%s=%d: New CIDR set failed; the node CIDR size is too big", cluster, f.flag, mask)
	}
}
