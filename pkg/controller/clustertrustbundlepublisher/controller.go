package clustertrustbundlepublisher

import (
	"context"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Informers makes informers whose bundles are only those of the signer.
var Informers = cache.Only(metav1.NamespaceAll, "spec.signerName", SignerName)

var bundleResource = certificatesv1beta1.Resource("clustertrustbundles")

// Controller publishes the root CA; its only key is the signer.
type Controller struct {
	*reconcile.Controller[string]
	api    API
	rootCA string
}

// New returns the controller, which is not running yet. RootCA is the PEM bundle to publish.
func New(api API, rootCA []byte, hand reconcile.Hand) (*Controller, error) {
	syncs.Register()
	c := &Controller{api: api, rootCA: string(rootCA)}
	c.Controller = reconcile.New(reconcile.Options[string]{
		Runner: runner.Options[string]{
			Name:  "kube-apiserver-serving-clustertrustbundle-publisher-controller",
			Queue: "ca_cert_publisher_cluster_trust_bundles",
		},
		Hand: hand, Caches: reconcile.Caches{bundleResource: api.informer.GetStore()}, OnDone: syncs.Observe,
	}, c.observe, plan)
	c.Add(SignerName)
	return c, api.watch(c.Runner, func() { c.Add(SignerName) })
}

func (c *Controller) observe(context.Context, string) (observed, error) {
	o := observed{rootCA: c.rootCA, written: c.api.written}
	for _, item := range c.api.informer.GetStore().List() {
		if bundle := c.api.read(item); bundle != nil {
			o.bundles = append(o.bundles, bundle)
		}
	}
	return o, nil
}
