package storageversionmigrator

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// runnerManager owns what is said in the status of definitions, as it does with
// the original.
const runnerManager = "migration-runner-controller"

// writeStatus updates the status under the version that the decision was made on.
func (c *Controller) writeStatus(ctx context.Context, m *migration, writes *consistency.Tracker[string]) error {
	wrote, err := c.client.StoragemigrationV1beta1().StorageVersionMigrations().UpdateStatus(ctx, m, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("update the status of migration %s: %w", m.Name, err)
	}
	writes.Wrote(m.Name, resource, wrote)
	return nil
}

// writeReport says in the status of the custom resource definition, if there is
// one, how the migration goes.
func (c *Controller) writeReport(ctx context.Context, m *migration, of func(*definition) *report) error {
	d, err := c.definitionOf(ctx, m)
	if d == nil || err != nil {
		return err
	}
	r := of(d)
	if r == nil {
		return nil
	}
	patch, err := statusPatch(d, r)
	if err != nil {
		return err
	}
	force := true
	_, err = c.definitions.Patch(ctx, d.Name, types.ApplyPatchType, patch, metav1.PatchOptions{FieldManager: runnerManager, Force: &force}, "status")
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("patch the status of custom resource definition %s: %w", d.Name, err)
	}
	return nil
}
