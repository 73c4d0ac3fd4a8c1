package servicecidrs

import (
	"errors"
	"net/netip"
	"slices"

	networkingv1 "k8s.io/api/networking/v1"
	networkinginformers "k8s.io/client-go/informers/networking/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name = "service-cidr-controller"

	// maxRetries is after how many failures in a row a ServiceCIDR waits for a change.
	maxRetries = 15
)

// Controller protects ServiceCIDRs; its keys are their names.
type Controller struct {
	*reconcile.Controller[string]
	cidrs, ips toolscache.Indexer
}

// New returns the controller, which is not running yet.
func New(cidrs networkinginformers.ServiceCIDRInformer, ips networkinginformers.IPAddressInformer, hand reconcile.Hand) (*Controller, error) {
	if err := errors.Join(cache.Ensure(cidrs.Informer(), deleted), cache.Ensure(ips.Informer(), handedOut)); err != nil {
		return nil, err
	}
	c := &Controller{cidrs: cidrs.Informer().GetIndexer(), ips: ips.Informer().GetIndexer()}
	c.Controller = reconcile.New(reconcile.Options[string]{
		Runner: runner.Options[string]{Name: name, Queue: "ipaddresses", Workers: 5, MaxRetries: maxRetries},
		Hand:   hand, Caches: reconcile.Caches{networkingv1.Resource("servicecidrs"): cidrs.Informer().GetStore()},
	}, c.observe, plan)
	return c, errors.Join(
		runner.Watch(c.Runner, cidrs.Informer(), c.cidrChanged),
		runner.Watch(c.Runner, ips.Informer(), c.addressChanged),
	)
}

// cidrChanged wakes the ServiceCIDR and, when it came, went or has got a second CIDR, those
// that wait to be deleted and that it may free or hold.
func (c *Controller) cidrChanged(change runner.Change[networkingv1.ServiceCIDR], wake runner.Wake[string]) {
	wake.Add(change.Now().Name)
	if change.Old != nil && change.New != nil && change.Old.UID == change.New.UID && slices.Equal(change.Old.Spec.CIDRs, change.New.Spec.CIDRs) {
		return
	}
	var ranges []netip.Prefix
	for _, cidr := range []*networkingv1.ServiceCIDR{change.Old, change.New} {
		if cidr != nil {
			ranges = append(ranges, rangesOf(cidr)...)
		}
	}
	for _, name := range c.deletedWith(ranges) {
		wake.Add(name)
	}
}

// addressChanged wakes the ServiceCIDRs that wait to be deleted and that the
// address is in.
func (c *Controller) addressChanged(change runner.Change[networkingv1.IPAddress], wake runner.Wake[string]) {
	before, was := addressOf(change.Old)
	after, is := addressOf(change.New)
	if was == is && before == after {
		return
	}
	for _, address := range []netip.Addr{before, after} {
		if !address.IsValid() {
			continue
		}
		for _, name := range c.deletedWith([]netip.Prefix{netip.PrefixFrom(address, address.BitLen())}) {
			wake.Add(name)
		}
	}
}
