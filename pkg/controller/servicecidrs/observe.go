package servicecidrs

import (
	"context"
	"iter"
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// observe reads a ServiceCIDR and, if it is to go, what holds it.
func (c *Controller) observe(_ context.Context, key string) (observed, error) {
	cidr, err := reconcile.Cached[networkingv1.ServiceCIDR](c.cidrs, key)
	if err != nil || cidr.DeletionTimestamp == nil {
		return observed{cidr: cidr}, err
	}
	var others []*networkingv1.ServiceCIDR
	for _, item := range c.cidrs.List() {
		if other, is := item.(*networkingv1.ServiceCIDR); is && other.Name != key {
			others = append(others, other)
		}
	}
	return around(cidr, others, c.addresses), nil
}

// addresses are those that the API server handed out of a range.
func (c *Controller) addresses(prefix netip.Prefix) iter.Seq[netip.Addr] {
	return func(yield func(netip.Addr) bool) {
		for _, value := range blocks(prefix) {
			found, err := cache.Lookup[networkingv1.IPAddress](c.ips, handedOut, value)
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
	found, err := cache.Lookup[networkingv1.ServiceCIDR](c.cidrs, deleted, cache.Yes)
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
