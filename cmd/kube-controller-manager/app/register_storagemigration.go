package app

import (
	"context"
	"fmt"

	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	apiextensionsclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/component-base/featuregate"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/storageversionmigrator"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func storageMigrationControllers() []Controller {
	return []Controller{
		{Name: names.StorageVersionMigratorController, Gates: []featuregate.Feature{features.StorageVersionMigrator, features.InformerResourceVersion},
			Needs:   of(storagemigrationv1beta1.SchemeGroupVersion, "storageversionmigrations"),
			Account: "storage-version-migrator-controller", QPS: 20, Burst: 100, New: newStorageVersionMigrator},
	}
}

func newStorageVersionMigrator(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	config, err := cc.configOf(cc.row)
	if err != nil {
		return nil, err
	}
	kinds, err := cc.discovery()
	if err != nil {
		return nil, err
	}
	definitions, err := apiextensionsclient.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make the client for custom resource definitions of %s: %w", cc.row.Account, err)
	}
	return storageversionmigrator.New(cc.Informers.Storagemigration().V1beta1().StorageVersionMigrations(), hand, storageversionmigrator.Options{
		Discovery: kinds, Definitions: definitions.ApiextensionsV1().CustomResourceDefinitions(),
	})
}
