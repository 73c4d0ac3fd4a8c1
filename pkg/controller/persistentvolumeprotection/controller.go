package persistentvolumeprotection

import (
	corev1 "k8s.io/api/core/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/protection"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Controller protects volumes; its keys are their names.
type Controller = reconcile.Controller[string]

// New returns the controller, which is not running yet.
func New(volumes coreinformers.PersistentVolumeInformer, hand reconcile.Hand) (*Controller, error) {
	cache := volumes.Informer().GetStore()
	c := reconcile.New(reconcile.Options[string]{
		Runner: runner.Options[string]{Name: "persistentvolume-protection-controller", Queue: "pvprotection"},
		Hand:   hand, Caches: reconcile.Caches{corev1.Resource("persistentvolumes"): cache},
	}, reconcile.Observe[corev1.PersistentVolume, string](cache), plan)
	return c, runner.Watch(c.Runner, volumes.Informer(), func(change runner.Change[corev1.PersistentVolume], wake runner.Wake[string]) {
		if change.New != nil && protection.Concerns(change.New, Finalizer) {
			wake.Add(change.New.Name)
		}
	})
}
