package bootstrapsigner

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/cluster-bootstrap/token/api"

	"github.com/kube-kcm/kube-controller-manager/pkg/bootstraptokens"
	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

var (
	// clusterInfo is the only key.
	clusterInfo = types.NamespacedName{Namespace: metav1.NamespacePublic, Name: api.ConfigMapClusterInfo}

	// Informers makes informers whose config maps are only the one that is signed.
	Informers = cache.Only(clusterInfo.Namespace, metav1.ObjectNameField, clusterInfo.Name)
)

// Controller signs the config map.
type Controller struct {
	*reconcile.Controller[types.NamespacedName]
	configMaps toolscache.Store
	secrets    corelisters.SecretLister
}

// New returns the controller, which is not running yet. The config maps may be
// those of Informers, the secrets those of bootstraptokens.Informers.
func New(configMaps coreinformers.ConfigMapInformer, secrets coreinformers.SecretInformer, hand reconcile.Hand) (*Controller, error) {
	c := &Controller{configMaps: configMaps.Informer().GetStore(), secrets: secrets.Lister()}
	c.Controller = reconcile.New(reconcile.Options[types.NamespacedName]{
		Runner: runner.Options[types.NamespacedName]{Name: "bootstrap-signer-controller", Queue: "bootstrap_signer_queue"},
		Hand:   hand, Caches: reconcile.Caches{corev1.Resource("configmaps"): c.configMaps},
	}, c.observe, plan)
	return c, errors.Join(
		runner.Watch(c.Runner, configMaps.Informer(), func(change runner.Change[corev1.ConfigMap], wake runner.Wake[types.NamespacedName]) {
			if info := change.New; info != nil && info.Namespace == clusterInfo.Namespace && info.Name == clusterInfo.Name {
				wake.Add(clusterInfo)
			}
		}),
		runner.Watch(c.Runner, secrets.Informer(), func(change runner.Change[corev1.Secret], wake runner.Wake[types.NamespacedName]) {
			if bootstraptokens.Is(change.Now()) {
				wake.Add(clusterInfo)
			}
		}),
	)
}

func (c *Controller) observe(_ context.Context, key types.NamespacedName) (observed, error) {
	info, err := reconcile.Cached[corev1.ConfigMap](c.configMaps, key)
	if err != nil {
		return observed{}, err
	}
	tokens, err := c.tokens()
	return observed{info, tokens}, err
}

func (c *Controller) tokens() ([]*corev1.Secret, error) {
	all, err := c.secrets.Secrets(metav1.NamespaceSystem).List(labels.Everything())
	if err != nil {
		return nil, fmt.Errorf("list the secrets of bootstrap tokens: %w", err)
	}
	return slices.DeleteFunc(all, func(secret *corev1.Secret) bool { return !bootstraptokens.Is(secret) }), nil
}
