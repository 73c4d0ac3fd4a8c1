package namespace

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// background leaves dependents to the garbage collector: they are in the same
// namespace and go by themselves.
var background = metav1.DeletePropagationBackground

// empty deletes the content of a namespace, as far as it goes in one pass.
func (c *Controller) empty(ctx context.Context, namespace *corev1.Namespace, known *catalog) *outcome {
	o := newOutcome(known)
	pods, rest := podsOf(known.resources)
	for _, r := range pods {
		left, err := c.deletePods(ctx, namespace, known, r)
		o.add(r, left, err)
	}
	if len(o.remaining) > 0 || len(o.failed) > 0 {
		o.podsFirst = true
		return o
	}
	for _, r := range rest {
		left, err := c.deleteAll(ctx, namespace.Name, known, r)
		o.add(r, left, err)
	}
	return o
}

// deletePods deletes the pods and estimates from their grace periods how long they take.
func (c *Controller) deletePods(ctx context.Context, namespace *corev1.Namespace, known *catalog, r resource) (remainder, error) {
	pods, err := c.client.CoreV1().Pods(namespace.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return remainder{}, err
	}
	if len(pods.Items) == 0 {
		return remainder{}, nil
	}
	grace := podGrace(pods.Items, namespace.DeletionTimestamp.Time, c.clock.Now())
	items := make([]metav1.PartialObjectMetadata, 0, len(pods.Items))
	for i := range pods.Items {
		items = append(items, metav1.PartialObjectMetadata{ObjectMeta: pods.Items[i].ObjectMeta})
	}
	return c.deleteItems(ctx, namespace.Name, known, r, items, grace)
}

// deleteAll deletes the objects of one kind.
func (c *Controller) deleteAll(ctx context.Context, namespace string, known *catalog, r resource) (remainder, error) {
	if !known.can(r, "list") {
		_, err := c.deleteCollection(ctx, namespace, known, r)
		return remainder{}, err // what cannot be listed cannot be waited for
	}
	items, err := c.list(ctx, namespace, known, r)
	if err != nil || len(items) == 0 {
		return remainder{}, err
	}
	return c.deleteItems(ctx, namespace, known, r, items, 0)
}

// deleteItems deletes what has been listed and looks what is left.
func (c *Controller) deleteItems(ctx context.Context, namespace string, known *catalog, r resource, items []metav1.PartialObjectMetadata, grace int64) (remainder, error) {
	var open []metav1.PartialObjectMetadata
	for i := range items {
		if needDeleting(&items[i]) {
			open = append(open, items[i])
		}
	}
	if len(open) > 0 {
		done, err := c.deleteCollection(ctx, namespace, known, r)
		if err == nil && !done {
			err = c.deleteEach(ctx, namespace, r, open)
		}
		if err != nil {
			return remainder{}, err
		}
		if items, err = c.list(ctx, namespace, known, r); err != nil {
			return remainder{}, err
		}
	}
	return judge(namespace, r, items, grace)
}

// deleteCollection reports false when the kind has no such verb.
func (c *Controller) deleteCollection(ctx context.Context, namespace string, known *catalog, r resource) (bool, error) {
	const verb = "deletecollection"
	if !known.can(r, verb) {
		return false, nil
	}
	err := c.metadata.Resource(r.gvr).Namespace(namespace).DeleteCollection(ctx,
		metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
	if unknownVerb(err) {
		known.cannot(r, verb)
		return false, nil
	}
	return true, err
}

func (c *Controller) deleteEach(ctx context.Context, namespace string, r resource, items []metav1.PartialObjectMetadata) error {
	for i := range items {
		err := c.metadata.Resource(r.gvr).Namespace(namespace).Delete(ctx, items[i].Name, metav1.DeleteOptions{
			PropagationPolicy: &background, Preconditions: preconditions(items[i].UID),
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
			return err
		}
	}
	return nil
}

func (c *Controller) list(ctx context.Context, namespace string, known *catalog, r resource) ([]metav1.PartialObjectMetadata, error) {
	const verb = "list"
	found, err := c.metadata.Resource(r.gvr).Namespace(namespace).List(ctx, metav1.ListOptions{})
	if unknownVerb(err) {
		known.cannot(r, verb)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return found.Items, nil
}

// unknownVerb tells that the server does not serve a collection in this way, or not at all.
func unknownVerb(err error) bool {
	return apierrors.IsMethodNotSupported(err) || apierrors.IsNotFound(err)
}

func preconditions(uid types.UID) *metav1.Preconditions {
	if uid == "" {
		return nil
	}
	return &metav1.Preconditions{UID: &uid}
}
