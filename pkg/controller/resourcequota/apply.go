package resourcequota

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// apply writes the status, and returns when to look again because it could not.
func (c *Controller) apply(ctx context.Context, key types.NamespacedName, q *corev1.ResourceQuota, do plan) (time.Duration, error) {
	if do.Status == nil {
		return 0, nil
	}
	changed := q.DeepCopy()
	changed.Status = *do.Status
	began := c.pacer.Now()
	wrote, err := c.client.CoreV1().ResourceQuotas(q.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if apierrors.IsConflict(err) {
		// The API server has charged the quota meanwhile; its event brings the newer one.
		return c.notes.conflicted(key, q.ResourceVersion), nil
	}
	c.pacer.Sent(key, began)
	switch {
	case apierrors.IsNotFound(err):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("update the status of resource quota %s: %w", key, err)
	}
	c.notes.follow(key, wrote, c.clock.Now())
	c.writes.Wrote(key, quotaResource, wrote)
	return 0, nil
}

// tell says in events and in the metric which numbers are frozen and why, and
// returns when there may be more to say.
func (c *Controller) tell(q *corev1.ResourceQuota, all []frozen, now time.Time) time.Duration {
	key := types.NamespacedName{Namespace: q.Namespace, Name: q.Name}
	broken := map[schema.GroupResource]bool{}
	var again time.Duration
	for _, f := range all {
		switch wait := f.Since.Add(brokenFor).Sub(now); {
		case !f.broken:
		case wait > 0:
			again = earliest(again, wait)
		default:
			broken[f.of] = true
		}
	}
	frozenQuotas.set(key, broken)
	began, ended := c.notes.news(key, broken)
	for _, of := range began {
		f := all[slices.IndexFunc(all, func(f frozen) bool { return f.of == of })]
		c.recorder.Eventf(q, corev1.EventTypeWarning, "UsageFrozen",
			"Usage of %s stays as it is: %s cannot be read: %s", words(f.Names), f.Resource, f.Error)
	}
	for _, of := range ended {
		c.recorder.Eventf(q, corev1.EventTypeNormal, "UsageCounted", "%s can be read again, its usage is counted", of)
	}
	return again
}

func words(names []corev1.ResourceName) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, ", ")
}
