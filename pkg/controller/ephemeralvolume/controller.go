package ephemeralvolume

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/component-helpers/storage/ephemeral"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

type key = types.NamespacedName

// Controller creates claims; its keys are pods.
type Controller struct {
	*reconcile.Controller[key]
	pods   toolscache.Indexer
	claims toolscache.Store
}

// New returns the controller, which is not running yet. Workers is how many pods are
// looked at at once.
func New(pods coreinformers.PodInformer, claims coreinformers.PersistentVolumeClaimInformer, hand reconcile.Hand, workers int) (*Controller, error) {
	register()
	if err := cache.Ensure(pods.Informer(), cache.PodsByClaim); err != nil {
		return nil, err
	}
	c := &Controller{pods: pods.Informer().GetIndexer(), claims: claims.Informer().GetStore()}
	c.Controller = reconcile.New(reconcile.Options[key]{
		Runner: runner.Options[key]{Name: "ephemeral-volume-controller", Queue: "ephemeral_volume", Workers: workers},
		Hand:   hand, Caches: reconcile.Caches{corev1.Resource("persistentvolumeclaims"): c.claims},
	}, c.observe, plan)
	return c, errors.Join(
		runner.Watch(c.Runner, pods.Informer(), podChanged),
		runner.Watch(c.Runner, claims.Informer(), c.claimChanged),
	)
}

// podChanged wakes a pod that is new. What a claim needs of a pod does not change.
func podChanged(change runner.Change[corev1.Pod], wake runner.Wake[key]) {
	if pod := change.New; pod != nil && (change.Old == nil || change.Old.UID != pod.UID) && pod.DeletionTimestamp == nil && len(volumes(pod)) > 0 {
		wake.Add(client.ObjectKeyFromObject(pod))
	}
}

// claimChanged wakes the pods that name a claim which is gone.
func (c *Controller) claimChanged(change runner.Change[corev1.PersistentVolumeClaim], wake runner.Wake[key]) {
	old := change.Old
	if old == nil || change.New != nil && change.New.UID == old.UID {
		return
	}
	pods, err := cache.Lookup[corev1.Pod](c.pods, cache.PodsByClaim, client.ObjectKeyFromObject(old).String())
	if err != nil {
		return // the index is there: New has asked for it
	}
	for _, pod := range pods {
		if len(volumes(pod)) > 0 {
			wake.Add(client.ObjectKeyFromObject(pod))
		}
	}
}

func (c *Controller) observe(_ context.Context, k key) (observed, error) {
	pod, err := reconcile.Cached[corev1.Pod](c.pods, k)
	if err != nil {
		return observed{}, err
	}
	o := observed{pod: pod, claims: map[string]*corev1.PersistentVolumeClaim{}}
	for _, v := range volumes(pod) {
		name := ephemeral.VolumeClaimName(pod, v)
		claim, err := reconcile.Cached[corev1.PersistentVolumeClaim](c.claims, key{Namespace: pod.Namespace, Name: name})
		if err == nil {
			o.claims[name] = claim
		}
	}
	return o, nil
}
