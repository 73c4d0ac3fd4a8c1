package statefulset

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/revisions"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

// claim adopts and releases pods, and returns those that are the set's own then.
func (c *Controller) claim(ctx context.Context, key Key, set *appsv1.StatefulSet, selector labels.Selector,
	live func(context.Context) (metav1.Object, error)) ([]*corev1.Pod, error) {
	claims, err := c.members(set, selector)
	if err != nil {
		return nil, err
	}
	mine := claims.Owned
	mayAdopt := ownership.Recheck(set, live)
	var errs []error
	for _, pod := range claims.Adopt {
		adopted, err := c.adopt(ctx, key, set, pod, mayAdopt)
		errs = append(errs, err)
		if adopted != nil {
			mine = append(mine, adopted)
		}
	}
	for _, pod := range claims.Release {
		patch, err := ownership.ReleasePatch(pod.UID, set.UID)
		if err == nil {
			_, err = c.patchPod(ctx, key, pod, patch)
		}
		// Invalid: the pod is another by now.
		if err == nil || apierrors.IsInvalid(err) {
			continue
		}
		if err := c.writes.UnlessGone(ctx, podResource, pod, err); err != nil {
			errs = append(errs, fmt.Errorf("release pod %s: %w", pod.Name, err))
		}
	}
	return mine, errors.Join(errs...)
}

// adopt returns nil without an error when the pod is gone.
func (c *Controller) adopt(ctx context.Context, key Key, set *appsv1.StatefulSet, pod *corev1.Pod, mayAdopt func(context.Context) error) (*corev1.Pod, error) {
	if err := mayAdopt(ctx); err != nil {
		return nil, err
	}
	patch, err := ownership.AdoptPatch(pod.UID, set, kind)
	if err == nil {
		_, err = c.patchPod(ctx, key, pod, patch)
	}
	if err == nil {
		return pod, nil
	}
	if err := c.writes.UnlessGone(ctx, podResource, pod, err); err != nil {
		return nil, fmt.Errorf("adopt pod %s: %w", pod.Name, err)
	}
	return nil, nil
}

func (c *Controller) patchPod(ctx context.Context, key Key, pod *corev1.Pod, patch []byte) (*corev1.Pod, error) {
	patched, err := c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if err == nil {
		c.writes.Wrote(key, podResource, patched)
	}
	return patched, err
}

// revise makes the revision of the set's template the latest one, and fills in
// which revisions the set is at. It returns the history as it is then.
func (c *Controller) revise(ctx context.Context, key Key, o *observed, history []*appsv1.ControllerRevision) ([]*appsv1.ControllerRevision, error) {
	e, err := edit(o.set, history, c.o.SemanticRevisions)
	if err != nil {
		return nil, err
	}
	update := e.latest
	switch {
	case update == nil && o.set.DeletionTimestamp != nil && o.set.Status.ObservedGeneration == o.set.Generation:
		// The history was there and goes with the set: to make it again would hold up
		// whoever deletes the set after what it owns.
		o.current.name, o.update.name = o.set.Status.CurrentRevision, o.set.Status.UpdateRevision
		return history, nil
	case e.renumber != nil:
		update, err = c.history.Renumber(ctx, key, e.renumber, e.number, nil)
	case e.create != nil:
		update, o.collisions, err = c.history.CreateFree(ctx, key, o.set, e.create, o.collisions)
		history = append(history, update)
	}
	if err != nil {
		return nil, fmt.Errorf("revise the history of stateful set %s: %w", key, err)
	}
	current := currentOf(o.set, history, update)
	o.current.name = current.Name
	o.update = revision{update.Name, &o.set.Spec.Template}
	if current.Name == update.Name {
		o.current = o.update
	} else if o.needsCurrent() {
		o.current.template, err = revisions.TemplateIn(current.Data.Raw)
	}
	return history, err
}

// report writes the status if it differs, unless it can wait: then it says how
// long. While the set fails it does not, as the next try may be minutes away. On
// a conflict it tries once more on the live object, because the pods
// were counted regardless of what changed.
func (c *Controller) report(ctx context.Context, key Key, set *appsv1.StatefulSet, status appsv1.StatefulSetStatus, failing bool) (time.Duration, error) {
	status = completed(set, status)
	if reported(set.Status, status) {
		return 0, nil
	}
	if !failing && underWay(set, status) {
		if wait := c.reports.Wait(key); wait > 0 {
			return wait, nil
		}
	}
	began := c.o.Clock.Now()
	written, err := c.writeStatus(ctx, set, status)
	if apierrors.IsConflict(err) {
		live, getErr := c.client.AppsV1().StatefulSets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		switch {
		case getErr != nil && c.writes.UnlessGone(ctx, setResource, set, getErr) == nil:
			return 0, nil
		case getErr != nil:
			return 0, fmt.Errorf("read stateful set %s for its status: %w", key, getErr)
		case live.UID != set.UID:
			return 0, nil
		}
		written, err = c.writeStatus(ctx, live, status)
	}
	if err != nil {
		if err := c.writes.UnlessGone(ctx, setResource, set, err); err != nil {
			return 0, fmt.Errorf("write the status of stateful set %s: %w", key, err)
		}
		return 0, nil
	}
	c.writes.Wrote(key, setResource, written)
	c.reports.Sent(key, began)
	return 0, nil
}

func (c *Controller) writeStatus(ctx context.Context, set *appsv1.StatefulSet, status appsv1.StatefulSetStatus) (*appsv1.StatefulSet, error) {
	after := set.DeepCopy()
	after.Status = status
	return c.client.AppsV1().StatefulSets(set.Namespace).UpdateStatus(ctx, after, metav1.UpdateOptions{})
}
