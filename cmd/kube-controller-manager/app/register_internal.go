package app

import (
	"context"

	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	genericfeatures "k8s.io/apiserver/pkg/features"
	"k8s.io/component-base/featuregate"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/storageversiongc"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func internalControllers() []Controller {
	return []Controller{
		{Name: names.StorageVersionGarbageCollectorController,
			Gates:   []featuregate.Feature{genericfeatures.APIServerIdentity, genericfeatures.StorageVersionAPI},
			Needs:   of(apiserverinternalv1alpha1.SchemeGroupVersion, "storageversions"),
			Account: "storage-version-garbage-collector", New: newStorageVersionGarbageCollector},
	}
}

func newStorageVersionGarbageCollector(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	leases := cc.narrowed(storageversiongc.Informers).Coordination().V1().Leases()
	return storageversiongc.New(leases, cc.Informers.Internal().V1alpha1().StorageVersions(), hand)
}
