package clustertrustbundlepublisher

import (
	"context"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name  = "kube-apiserver-serving-clustertrustbundle-publisher-controller"
	queue = "ca_cert_publisher_cluster_trust_bundles"

	// untilCached is how long the cache has to show a bundle that somebody else created.
	untilCached = time.Second
)

var bundleResource = certificatesv1beta1.Resource("clustertrustbundles")

// Options are the settings of the controller.
type Options struct {
	// RootCA is the PEM bundle to publish.
	RootCA []byte
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller publishes the root CA; its only key is the signer.
type Controller struct {
	*runner.Runner[string]
	api    API
	writes *consistency.Tracker[string]
	rootCA string
	clock  clock.PassiveClock
}

// New returns the controller, which is not running yet.
func New(api API, o Options) (*Controller, error) {
	syncs.Register()
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		api: api, rootCA: string(o.RootCA), clock: o.Clock,
		writes: consistency.NewTracker[string](map[schema.GroupResource]consistency.Store{bundleResource: api.informer.GetStore()}),
	}
	c.Runner = runner.New(runner.Options[string]{Name: name, Queue: queue, Clock: o.Clock, Writes: c.writes}, c.sync)
	c.Add(SignerName)
	return c, api.watch(c.Runner, func() { c.Add(SignerName) })
}

func (c *Controller) sync(ctx context.Context, _ string) runner.Result {
	start := c.clock.Now()
	do := decide(c.published(), c.rootCA)
	again, err := c.apply(ctx, do)
	syncs.Observe(c.clock.Since(start), err)
	return runner.Done(err).LookAgain(again).Because(do)
}

// published are the bundles of the signer that the cache shows.
func (c *Controller) published() []*certificatesv1beta1.ClusterTrustBundle {
	var bundles []*certificatesv1beta1.ClusterTrustBundle
	for _, item := range c.api.informer.GetStore().List() {
		if bundle := c.api.convert(item); bundle != nil {
			bundles = append(bundles, bundle)
		}
	}
	return bundles
}
