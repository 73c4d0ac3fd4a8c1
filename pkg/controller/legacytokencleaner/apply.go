package legacytokencleaner

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/klog/v2"
)

// apply marks or deletes a secret in the version that was judged: it may have
// been used since.
func (c *Controller) apply(ctx context.Context, do action, secret metav1.Object, now time.Time) error {
	var err error
	if do == mark {
		err = c.markInvalid(ctx, secret, now)
	} else {
		err = c.deleteToken(ctx, secret)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s token secret %s: %w", do, klog.KObj(secret), err)
	}
	labels := secret.GetLabels()
	klog.FromContext(ctx).Info("Retired an unused generated token", "secret", klog.KObj(secret), "action", do,
		"created", secret.GetCreationTimestamp(), "lastUsed", labels[LastUsedLabel], "invalidSince", labels[InvalidSinceLabel])
	return nil
}

// markInvalid sends a merge patch that names the secret in full, as the original
// does, so that managedFields show an update.
func (c *Controller) markInvalid(ctx context.Context, secret metav1.Object, now time.Time) error {
	patch, err := json.Marshal(applycorev1.Secret(secret.GetName(), secret.GetNamespace()).
		WithUID(secret.GetUID()).WithResourceVersion(secret.GetResourceVersion()).
		WithLabels(map[string]string{InvalidSinceLabel: now.UTC().Format(time.DateOnly)}))
	if err != nil {
		return err
	}
	_, err = c.client.CoreV1().Secrets(secret.GetNamespace()).Patch(ctx, secret.GetName(), types.MergePatchType, patch, metav1.PatchOptions{})
	return err
}

func (c *Controller) deleteToken(ctx context.Context, secret metav1.Object) error {
	uid, version := secret.GetUID(), secret.GetResourceVersion()
	return c.client.CoreV1().Secrets(secret.GetNamespace()).Delete(ctx, secret.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
}
