package tokencleaner

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/bootstraptokens"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Controller deletes expired tokens; its keys are their secrets.
type Controller = reconcile.Controller[types.NamespacedName]

// New returns the controller, which is not running yet. The secrets may be those
// of bootstraptokens.Informers.
func New(secrets coreinformers.SecretInformer, hand reconcile.Hand) (*Controller, error) {
	cache := secrets.Informer().GetStore()
	c := reconcile.New(reconcile.Options[types.NamespacedName]{
		Runner: runner.Options[types.NamespacedName]{Name: "token-cleaner-controller", Queue: "token_cleaner"},
		Hand:   hand, Caches: reconcile.Caches{corev1.Resource("secrets"): cache},
	}, reconcile.Observe[corev1.Secret, types.NamespacedName](cache), plan)
	return c, runner.Watch(c.Runner, secrets.Informer(), func(change runner.Change[corev1.Secret], wake runner.Wake[types.NamespacedName]) {
		if change.New != nil && bootstraptokens.Is(change.New) {
			wake.Add(client.ObjectKeyFromObject(change.New))
		}
	})
}
