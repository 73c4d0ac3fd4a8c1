package volumeattributesclassprotection

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	storageinformers "k8s.io/client-go/informers/storage/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/protection"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// byClass finds claims and volumes by the classes that they name.
var byClass = cache.NewIndex("volumeAttributesClass", func(object any) ([]string, error) {
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		return ofClaim(o), nil
	case *corev1.PersistentVolume:
		return ofVolume(o), nil
	}
	return nil, nil
})

// Informers are the caches that the controller reads.
type Informers struct {
	Classes storageinformers.VolumeAttributesClassInformer
	Claims  coreinformers.PersistentVolumeClaimInformer
	Volumes coreinformers.PersistentVolumeInformer
}

// Controller protects classes; its keys are their names.
type Controller struct {
	*reconcile.Controller[string]
	classes         toolscache.Store
	claims, volumes toolscache.Indexer
}

// New returns the controller, which is not running yet.
func New(in Informers, hand reconcile.Hand) (*Controller, error) {
	if err := errors.Join(cache.Ensure(in.Claims.Informer(), byClass), cache.Ensure(in.Volumes.Informer(), byClass)); err != nil {
		return nil, err
	}
	c := &Controller{classes: in.Classes.Informer().GetStore(), claims: in.Claims.Informer().GetIndexer(), volumes: in.Volumes.Informer().GetIndexer()}
	c.Controller = reconcile.New(reconcile.Options[string]{
		Runner: runner.Options[string]{Name: "volumeattributesclass-protection-controller", Queue: "vacprotection"},
		Hand:   hand, Caches: reconcile.Caches{storagev1.Resource("volumeattributesclasses"): c.classes},
	}, c.observe, plan)
	return c, c.watch(in)
}

// watch wakes a class that is new or being deleted, and one that something names no longer.
func (c *Controller) watch(in Informers) error {
	return errors.Join(
		runner.Watch(c.Runner, in.Classes.Informer(), func(change runner.Change[storagev1.VolumeAttributesClass], wake runner.Wake[string]) {
			if change.New != nil && protection.Concerns(change.New, Finalizer) {
				wake.Add(change.New.Name)
			}
		}),
		runner.Watch(c.Runner, in.Claims.Informer(), func(change runner.Change[corev1.PersistentVolumeClaim], wake runner.Wake[string]) {
			for _, class := range left(ofClaim(change.Old), ofClaim(change.New)) {
				wake.Add(class)
			}
		}),
		runner.Watch(c.Runner, in.Volumes.Informer(), func(change runner.Change[corev1.PersistentVolume], wake runner.Wake[string]) {
			for _, class := range left(ofVolume(change.Old), ofVolume(change.New)) {
				wake.Add(class)
			}
		}),
	)
}

func (c *Controller) observe(_ context.Context, key string) (o observed, err error) {
	if o.class, err = reconcile.Cached[storagev1.VolumeAttributesClass](c.classes, key); err != nil {
		return o, err
	}
	if o.claims, err = cache.Lookup[corev1.PersistentVolumeClaim](c.claims, byClass, key); err != nil {
		return o, err
	}
	o.volumes, err = cache.Lookup[corev1.PersistentVolume](c.volumes, byClass, key)
	return o, err
}
