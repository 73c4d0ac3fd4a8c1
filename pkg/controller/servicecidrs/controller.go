package servicecidrs

import (
	"context"
	"net/netip"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	networkinginformers "k8s.io/client-go/informers/networking/v1"
	"k8s.io/client-go/kubernetes"
	networkinglisters "k8s.io/client-go/listers/networking/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name  = "service-cidr-controller"
	queue = "ipaddresses"

	// maxRetries is after how many failures in a row a ServiceCIDR waits for a change.
	maxRetries = 15
)

var cidrResource = schema.GroupResource{Group: networkingv1.GroupName, Resource: "servicecidrs"}

// Options are the settings of the controller.
type Options struct {
	// Workers is how many ServiceCIDRs are worked on at once; 1 by default.
	Workers int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller protects ServiceCIDRs; its keys are their names.
type Controller struct {
	*runner.Runner[string]
	cidrs                   networkinglisters.ServiceCIDRLister
	cidrIndex, addressIndex toolscache.Indexer
	client                  kubernetes.Interface
	events                  record.EventRecorder
	writes                  *consistency.Tracker[string]
	clock                   clock.PassiveClock
}

// New returns the controller, which is not running yet.
func New(cidrs networkinginformers.ServiceCIDRInformer, addresses networkinginformers.IPAddressInformer, client kubernetes.Interface, events record.EventRecorder, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := cache.Ensure(cidrs.Informer(), deleted); err != nil {
		return nil, err
	}
	if err := cache.Ensure(addresses.Informer(), handedOut); err != nil {
		return nil, err
	}
	c := &Controller{
		cidrs: cidrs.Lister(), cidrIndex: cidrs.Informer().GetIndexer(), addressIndex: addresses.Informer().GetIndexer(),
		client: client, events: events, clock: o.Clock,
	}
	c.writes = consistency.NewTracker[string](map[schema.GroupResource]consistency.Store{cidrResource: cidrs.Informer().GetStore()})
	c.Runner = runner.New(runner.Options[string]{
		Name: name, Queue: queue, Workers: o.Workers, Clock: o.Clock, Writes: c.writes, MaxRetries: maxRetries,
	}, c.sync)
	if err := runner.Watch(c.Runner, cidrs.Informer(), c.cidrChanged); err != nil {
		return nil, err
	}
	return c, runner.Watch(c.Runner, addresses.Informer(), c.addressChanged)
}

// cidrChanged wakes the ServiceCIDR and, when it came or went, those that wait to
// be deleted and that it may free or hold.
func (c *Controller) cidrChanged(change runner.Change[networkingv1.ServiceCIDR], wake runner.Wake[string]) {
	wake.Add(change.Now().Name)
	if change.Old != nil && change.New != nil && change.Old.UID == change.New.UID {
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
	before, was := handed(change.Old)
	after, is := handed(change.New)
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

func handed(ip *networkingv1.IPAddress) (netip.Addr, bool) {
	if ip == nil {
		return netip.Addr{}, false
	}
	return addressOf(ip)
}

func (c *Controller) sync(ctx context.Context, cidrName string) runner.Result {
	cidr, near, err := c.observe(cidrName)
	if err != nil {
		return runner.Done(err)
	}
	if cidr == nil {
		c.writes.Forget(cidrName)
	}
	do := decide(cidr, near, c.clock.Now())
	return runner.Done(c.apply(ctx, cidr, do)).LookAgain(do.Wait).Because(do)
}
