package storageversionmigrator

import (
	"fmt"
	"slices"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	conditionMigrating = "StorageMigrating"

	reasonDefinitionRunning   = "MigrationRunning"
	reasonDefinitionSucceeded = "MigrationSucceeded"
	reasonDefinitionFailed    = "MigrationFailed"

	messageDefinitionSucceeded = "The migration has succeeded and the stored versions have been updated"
	messageDefinitionMismatch  = "The migration has succeeded but the stored versions have not been updated due to a generation mismatch"
	messageDefinitionFailed    = "The migration has failed"
)

type definition = apiextensionsv1.CustomResourceDefinition

// report is what is said in the status of a custom resource definition.
type report struct {
	condition metav1.Condition
	stored    []string
}

// beginning reports that the migration has its turn. The condition remembers
// the generation whose storage version objects are migrated to.
func beginning(d *definition, m *migration, now time.Time) *report {
	return &report{condition(d, now, metav1.ConditionTrue, reasonDefinitionRunning, fmt.Sprintf("Migration %s is running", m.Name)), d.Status.StoredVersions}
}

// ending reports what came of the migration. Only if all objects were migrated,
// and to the version that is still the storage version, are others not stored.
// It is nil when the end has been reported before.
func ending(d *definition, m *migration, now time.Time) *report {
	began := find(d)
	switch {
	case began != nil && began.Status != apiextensionsv1.ConditionTrue:
		return nil
	case !succeeded(m):
		return &report{condition(d, now, metav1.ConditionFalse, reasonDefinitionFailed, messageDefinitionFailed), d.Status.StoredVersions}
	case began == nil || began.ObservedGeneration != d.Generation:
		return &report{condition(d, now, metav1.ConditionFalse, reasonDefinitionSucceeded, messageDefinitionMismatch), d.Status.StoredVersions}
	}
	return &report{condition(d, now, metav1.ConditionFalse, reasonDefinitionSucceeded, messageDefinitionSucceeded), storageVersion(d)}
}

func condition(d *definition, now time.Time, status metav1.ConditionStatus, reason, message string) metav1.Condition {
	at := metav1.NewTime(now)
	if old := find(d); old != nil && metav1.ConditionStatus(old.Status) == status {
		at = old.LastTransitionTime
	}
	return metav1.Condition{
		Type: conditionMigrating, Status: status, Reason: reason, Message: message, ObservedGeneration: d.Generation, LastTransitionTime: at,
	}
}

func find(d *definition) *apiextensionsv1.CustomResourceDefinitionCondition {
	i := slices.IndexFunc(d.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool { return c.Type == conditionMigrating })
	if i < 0 {
		return nil
	}
	return &d.Status.Conditions[i]
}

func storageVersion(d *definition) []string {
	for _, version := range d.Spec.Versions {
		if version.Storage {
			return []string{version.Name}
		}
	}
	return d.Status.StoredVersions
}

// runnerManager owns what is said in the status of definitions, as it does with
// the original.
const runnerManager = "migration-runner-controller"

var definitions = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// tell applies the report to the version of the definition that it was made from. The
// stored versions are always in it: a field that its manager leaves out would be removed.
func tell(d *definition, r *report) act.Apply {
	of := act.InResource(definitions, "", d.Name)
	of.UID = d.UID
	return act.Apply{Of: of, Subresource: "status", Manager: runnerManager, Force: true, Configuration: configuration{
		"kind": "CustomResourceDefinition", "apiVersion": apiextensionsv1.SchemeGroupVersion.String(),
		"metadata": map[string]any{"name": d.Name, "uid": d.UID, "resourceVersion": d.ResourceVersion},
		"status":   map[string]any{"conditions": []metav1.Condition{r.condition}, "storedVersions": r.stored},
	}}
}

// configuration is what is applied.
type configuration map[string]any

// IsApplyConfiguration says so.
func (configuration) IsApplyConfiguration() {}
