package persistentvolumeexpander

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes/operations"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

type key = types.NamespacedName

// Controller sees to claims that grow; its keys are their names.
type Controller struct {
	*reconcile.Controller[key]
	claims, volumes toolscache.Store
	live            client.Reader
}

// New returns the controller, which is not running yet.
func New(claims coreinformers.PersistentVolumeClaimInformer, volumes coreinformers.PersistentVolumeInformer, hand reconcile.Hand) (*Controller, error) {
	operations.Register()
	c := &Controller{claims: claims.Informer().GetStore(), volumes: volumes.Informer().GetStore(), live: hand.Reader()}
	c.Controller = reconcile.New(reconcile.Options[key]{
		Runner: runner.Options[key]{Name: "persistentvolume-expander-controller", Queue: "volume_expand", Workers: 10},
		Hand:   hand, Caches: reconcile.Caches{
			corev1.Resource("persistentvolumeclaims"): c.claims, corev1.Resource("persistentvolumes"): c.volumes,
		},
	}, c.observe, plan)
	return c, errors.Join(
		runner.Watch(c.Runner, claims.Informer(), func(change runner.Change[corev1.PersistentVolumeClaim], wake runner.Wake[key]) {
			if claim := change.New; claim != nil && (change.Old == nil || grew(change.Old, claim)) && bound(claim) {
				wake.Add(client.ObjectKeyFromObject(claim))
			}
		}),
		// A claim whose volume was not there, or was another claim's, waits for that to change.
		runner.Watch(c.Runner, volumes.Informer(), func(change runner.Change[corev1.PersistentVolume], wake runner.Wake[key]) {
			if ref := claimOf(change.New); ref != nil && !change.Initial && (claimOf(change.Old) == nil || claimOf(change.Old).UID != ref.UID) {
				wake.Add(key{Namespace: ref.Namespace, Name: ref.Name})
			}
		}),
	)
}

func claimOf(volume *corev1.PersistentVolume) *corev1.ObjectReference {
	if volume == nil {
		return nil
	}
	return volume.Spec.ClaimRef
}
