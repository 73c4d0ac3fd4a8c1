package bootstrapsigner

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/cluster-bootstrap/token/api"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/bootstraptokens"
	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name  = "bootstrap-signer-controller"
	queue = "bootstrap_signer_queue"
)

var (
	configMapResource = schema.GroupResource{Resource: "configmaps"}
	// clusterInfo is the only key.
	clusterInfo = types.NamespacedName{Namespace: metav1.NamespacePublic, Name: api.ConfigMapClusterInfo}
)

// Informers returns informers whose config maps are only the one that is signed.
// The caller starts them.
func Informers(client kubernetes.Interface, resync time.Duration) informers.SharedInformerFactory {
	return cache.FilteredIn(client, clusterInfo.Namespace, resync,
		fields.OneTermEqualSelector(metav1.ObjectNameField, clusterInfo.Name).String())
}

// Options are the settings of the controller.
type Options struct {
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller signs the config map.
type Controller struct {
	*runner.Runner[types.NamespacedName]
	configMaps corelisters.ConfigMapLister
	secrets    corelisters.SecretLister
	client     kubernetes.Interface
	writes     *consistency.Tracker[types.NamespacedName]
	clock      clock.PassiveClock
}

// New returns the controller, which is not running yet. The config maps may be
// those of Informers, the secrets those of bootstraptokens.Informers.
func New(configMaps coreinformers.ConfigMapInformer, secrets coreinformers.SecretInformer, client kubernetes.Interface, o Options) (*Controller, error) {
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		configMaps: configMaps.Lister(), secrets: secrets.Lister(), client: client, clock: o.Clock,
		writes: consistency.NewTracker[types.NamespacedName](map[schema.GroupResource]consistency.Store{
			configMapResource: configMaps.Informer().GetStore(),
		}),
	}
	c.Runner = runner.New(runner.Options[types.NamespacedName]{Name: name, Queue: queue, Clock: o.Clock, Writes: c.writes}, c.sync)
	err := runner.Watch(c.Runner, configMaps.Informer(), func(change runner.Change[corev1.ConfigMap], wake runner.Wake[types.NamespacedName]) {
		if info := change.New; info != nil && info.Namespace == clusterInfo.Namespace && info.Name == clusterInfo.Name {
			wake.Add(clusterInfo)
		}
	})
	if err != nil {
		return nil, err
	}
	return c, runner.Watch(c.Runner, secrets.Informer(), func(change runner.Change[corev1.Secret], wake runner.Wake[types.NamespacedName]) {
		if bootstraptokens.Is(change.Now()) {
			wake.Add(clusterInfo)
		}
	})
}

func (c *Controller) sync(ctx context.Context, _ types.NamespacedName) runner.Result {
	info, err := c.configMaps.ConfigMaps(clusterInfo.Namespace).Get(clusterInfo.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return runner.Done(err)
	}
	tokens, err := c.tokens()
	if err != nil {
		return runner.Done(err)
	}
	do := decide(info, tokens, c.clock.Now())
	for _, secret := range do.Malformed {
		klog.FromContext(ctx).V(3).Info("Ignoring a bootstrap token", "secret", secret, "why", do.Ignored[secret])
	}
	err = c.write(ctx, do.update)
	if apierrors.IsInvalid(err) {
		return runner.GiveUp(err).Because(do)
	}
	return runner.Done(err).LookAgain(do.Again).Because(do)
}

func (c *Controller) tokens() ([]*corev1.Secret, error) {
	all, err := c.secrets.Secrets(metav1.NamespaceSystem).List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the secrets of bootstrap tokens: %w", err)
	}
	tokens := make([]*corev1.Secret, 0, len(all))
	for _, secret := range all {
		if bootstraptokens.Is(secret) {
			tokens = append(tokens, secret)
		}
	}
	return tokens, nil
}

// write updates the config map in the version that was judged: the role has no
// patch. One that is gone meanwhile needs no signatures.
func (c *Controller) write(ctx context.Context, info *corev1.ConfigMap) error {
	if info == nil {
		return nil
	}
	updated, err := c.client.CoreV1().ConfigMaps(info.Namespace).Update(ctx, info, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("sign config map %s: %w", clusterInfo, err)
	}
	c.writes.Wrote(clusterInfo, configMapResource, updated)
	return nil
}
