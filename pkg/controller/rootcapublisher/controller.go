package rootcapublisher

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Informers makes informers whose config maps are only those of the published name.
// The controller's own account may not list config maps.
var Informers = cache.Only(metav1.NamespaceAll, metav1.ObjectNameField, ConfigMapName)

// Controller publishes the root CA; its keys are names of namespaces.
type Controller struct {
	*reconcile.Controller[string]
	namespaces, configMaps toolscache.Store
	rootCA                 string
}

// New returns the controller, which is not running yet. RootCA is the PEM bundle to publish.
func New(namespaces coreinformers.NamespaceInformer, configMaps coreinformers.ConfigMapInformer, rootCA []byte, hand reconcile.Hand) (*Controller, error) {
	syncs.Register()
	c := &Controller{namespaces: namespaces.Informer().GetStore(), configMaps: configMaps.Informer().GetStore(), rootCA: string(rootCA)}
	c.Controller = reconcile.New(reconcile.Options[string]{
		Runner: runner.Options[string]{Name: "root-ca-certificate-publisher-controller", Queue: "root_ca_cert_publisher", Namespace: func(key string) string { return key }},
		Hand:   hand, Caches: reconcile.Caches{corev1.Resource("configmaps"): c.configMaps}, OnDone: syncs.Observe,
	}, c.observe, plan)
	return c, errors.Join(
		runner.Watch(c.Runner, namespaces.Informer(), func(change runner.Change[corev1.Namespace], wake runner.Wake[string]) {
			// One that ends is repaired when its config map changes or a new CA is published.
			if change.New != nil && (change.Old == nil || change.New.Status.Phase == corev1.NamespaceActive) {
				wake.Add(change.New.Name)
			}
		}),
		runner.Watch(c.Runner, configMaps.Informer(), func(change runner.Change[corev1.ConfigMap], wake runner.Wake[string]) {
			// A new one was either published here or found by the first list, where its namespace is a key already.
			if change.Old != nil && change.Old.Name == ConfigMapName {
				wake.Add(change.Old.Namespace)
			}
		}),
	)
}

func (c *Controller) observe(_ context.Context, key string) (observed, error) {
	namespace, err := reconcile.Cached[corev1.Namespace](c.namespaces, key)
	if err != nil {
		return observed{}, err
	}
	published, _ := reconcile.Cached[corev1.ConfigMap](c.configMaps, key+"/"+ConfigMapName)
	return observed{namespace, published, c.rootCA}, nil
}
