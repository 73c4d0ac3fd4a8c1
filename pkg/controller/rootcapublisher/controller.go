package rootcapublisher

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name  = "root-ca-certificate-publisher-controller"
	queue = "root_ca_cert_publisher"

	// untilCached is how long the cache has to show a config map that somebody else created.
	untilCached = time.Second
)

var configMapResource = schema.GroupResource{Resource: "configmaps"}

// Informers returns informers whose config maps are only those of the published
// name. The caller starts them; client must be one that may list and watch
// config maps, which the controller's own may not.
func Informers(client kubernetes.Interface, resync time.Duration) informers.SharedInformerFactory {
	return cache.Filtered(client, resync, fields.OneTermEqualSelector(metav1.ObjectNameField, ConfigMapName).String())
}

// Options are the settings of the controller.
type Options struct {
	// RootCA is the PEM bundle to publish.
	RootCA []byte
	// Workers is how many namespaces are worked on at once; 1 by default.
	Workers int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller publishes the root CA; its keys are names of namespaces.
type Controller struct {
	*runner.Runner[string]
	namespaces corelisters.NamespaceLister
	configMaps corelisters.ConfigMapLister
	client     kubernetes.Interface
	writes     *consistency.Tracker[string]
	rootCA     string
	clock      clock.PassiveClock
}

// New returns the controller, which is not running yet.
func New(namespaces coreinformers.NamespaceInformer, configMaps coreinformers.ConfigMapInformer, client kubernetes.Interface, o Options) (*Controller, error) {
	syncs.Register()
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		namespaces: namespaces.Lister(), configMaps: configMaps.Lister(), client: client,
		rootCA: string(o.RootCA), clock: o.Clock,
		writes: consistency.NewTracker[string](map[schema.GroupResource]consistency.Store{
			configMapResource: configMaps.Informer().GetStore(),
		}),
	}
	c.Runner = runner.New(runner.Options[string]{
		Name: name, Queue: queue, Workers: o.Workers, Clock: o.Clock, Writes: c.writes,
	}, c.sync)
	err := runner.Watch(c.Runner, namespaces.Informer(), func(change runner.Change[corev1.Namespace], wake runner.Wake[string]) {
		if change.New != nil {
			wake.Add(change.New.Name)
		}
	})
	if err != nil {
		return nil, err
	}
	return c, runner.Watch(c.Runner, configMaps.Informer(), func(change runner.Change[corev1.ConfigMap], wake runner.Wake[string]) {
		// A new one was either published here or found by the first list, where its namespace is a key already.
		if change.Old != nil && change.Old.Name == ConfigMapName {
			wake.Add(change.Old.Namespace)
		}
	})
}

func (c *Controller) sync(ctx context.Context, namespaceName string) runner.Result {
	start := c.clock.Now()
	do, again, err := c.reconcile(ctx, namespaceName)
	syncs.Observe(c.clock.Since(start), err)
	return runner.Done(err).LookAgain(again).Because(do)
}

// reconcile returns what it decided and after which time the key is to be looked at again.
func (c *Controller) reconcile(ctx context.Context, namespaceName string) (plan, time.Duration, error) {
	namespace, err := c.namespaces.Get(namespaceName)
	if apierrors.IsNotFound(err) {
		c.writes.Forget(namespaceName)
		return decide(nil, nil, c.rootCA), 0, nil
	}
	if err != nil {
		return plan{}, 0, err
	}
	published, err := c.configMaps.ConfigMaps(namespaceName).Get(ConfigMapName)
	if apierrors.IsNotFound(err) {
		published, err = nil, nil
	}
	if err != nil {
		return plan{}, 0, err
	}
	do := decide(namespace, published, c.rootCA)
	again, err := c.apply(ctx, namespaceName, do)
	return do, again, err
}

func (c *Controller) apply(ctx context.Context, namespaceName string, do plan) (time.Duration, error) {
	var wrote *corev1.ConfigMap
	var err error
	switch {
	case do.create != nil:
		wrote, err = c.client.CoreV1().ConfigMaps(namespaceName).Create(ctx, do.create, metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return untilCached, nil // it may be a wrong one
		}
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return 0, nil
		}
	case do.update != nil:
		wrote, err = c.client.CoreV1().ConfigMaps(namespaceName).Update(ctx, do.update, metav1.UpdateOptions{})
	default:
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("publish the root CA in config map %s/%s: %w", namespaceName, ConfigMapName, err)
	}
	c.writes.Wrote(namespaceName, configMapResource, wrote)
	return 0, nil
}
