package app

import (
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

func storageMigrationControllers() []Controller {
	return []Controller{
		{Name: names.StorageVersionMigratorController, Start: startStorageVersionMigratorController},
	}
}
