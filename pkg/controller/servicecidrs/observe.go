package servicecidrs

import (
	"iter"
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
)

// observe reads a ServiceCIDR, nil if it is gone, and what is around it.
func (c *Controller) observe(name string) (*networkingv1.ServiceCIDR, surroundings, error) {
	cidr, err := c.cidrs.Get(name)
	if apierrors.IsNotFound(err) {
		return nil, surroundings{}, nil
	}
	if err != nil || cidr.DeletionTimestamp == nil {
		return cidr, surroundings{}, err // only one that is to go needs the others
	}
	all, err := c.cidrs.List(labels.Everything())
	near := surroundings{addresses: c.addresses}
	for _, other := range all {
		if other.Name != name {
			near.others = append(near.others, other)
		}
	}
	return cidr, near, err
}

// addresses are those that the API server handed out of a range.
func (c *Controller) addresses(prefix netip.Prefix) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, value := range blocks(prefix) {
			found, err := cache.Lookup[networkingv1.IPAddress](c.addressIndex, handedOut, value)
			if err != nil {
				continue // the index is there from the start
			}
			for _, ip := range found {
				if address, ok := addressOf(ip); ok && prefix.Contains(address) && !yield(address) {
					return
				}
			}
		}
	}
}

// deletedWith returns the names of ServiceCIDRs that are being deleted and have
// addresses in common with the ranges.
func (c *Controller) deletedWith(ranges []netip.Prefix) []string {
	if len(ranges) == 0 {
		return nil
	}
	found, err := cache.Lookup[networkingv1.ServiceCIDR](c.cidrIndex, deleted, cache.Yes)
	if err != nil {
		return nil // the index is there from the start
	}
	var names []string
	for _, cidr := range found {
		if overlap(rangesOf(cidr), ranges) {
			names = append(names, cidr.Name)
		}
	}
	return names
}
