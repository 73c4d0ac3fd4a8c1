package scenarios

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (r *run) delete(ctx context.Context, step Step) error {
	target, how := cut(step.Rest)
	ref, objects, err := r.existing(ctx, step, target)
	if err != nil {
		return err
	}
	for _, object := range objects {
		options := howToDelete(how)
		if err := r.client(ref).Delete(ctx, object.GetName(), options); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s: %w", target, err)
		}
	}
	return nil
}

var waysToDelete = []string{"", "foreground", "background", "orphan", "now"}

// howToDelete reads one of the ways to delete.
func howToDelete(how string) metav1.DeleteOptions {
	propagation := map[string]metav1.DeletionPropagation{
		"": metav1.DeletePropagationBackground, "now": metav1.DeletePropagationBackground, "background": metav1.DeletePropagationBackground,
		"foreground": metav1.DeletePropagationForeground, "orphan": metav1.DeletePropagationOrphan,
	}[how]
	options := metav1.DeleteOptions{PropagationPolicy: &propagation}
	if how == "now" {
		options.GracePeriodSeconds = new(int64)
	}
	return options
}
