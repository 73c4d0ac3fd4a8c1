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

// empty deletes the content of a namespace that is known, as far as it goes in
// one pass.
func (c *Controller) empty(ctx context.Context, namespace *corev1.Namespace, f findings) *outcome {
	o := newOutcome(f)
	pods, rest := podsOf(f.known.resources)
	for _, r := range pods {
		_, unread := f.unread[r.gvr]
		failed := len(o.failed)
		if t, held := f.held[r.gvr]; held {
			c.deleteAll(ctx, namespace, r, t, o)
		}
		o.podsFirst = unread || len(o.remaining) > 0 || len(o.failed) > failed
	}
	if o.podsFirst {
		return o
	}
	for _, r := range rest {
		t, held := f.held[r.gvr]
		switch {
		case held:
			c.deleteAll(ctx, namespace, r, t, o)
		case !r.list:
			_, err := c.deleteCollection(ctx, namespace.Name, r)
			o.add(r, remainder{}, err) // what cannot be listed cannot be waited for
		}
	}
	return o
}

// deleteAll deletes the objects of one kind, of which a list has shown t, and
// notes what is left. A kind that does not answer is left to the probes, and so is
// one that is answered as if it were not served while discovery offers it.
func (c *Controller) deleteAll(ctx context.Context, namespace *corev1.Namespace, r resource, t tally, o *outcome) {
	if err := c.waiting.silent(r.gvr); err != nil {
		c.lose(namespace, r, err, o)
		return
	}
	remove := c.deleteKind
	if r.gvr == podResource {
		remove = c.deletePods
	}
	t, grace, err := remove(ctx, namespace, r, t)
	switch {
	case err != nil && ctx.Err() == nil && unreachable(err):
		err = naming(r.gvr, err)
		c.waiting.note(r.gvr, err, c.clock.Now())
		c.lose(namespace, r, err, o)
	case unserved(err):
		c.library.doubt()
		if c.library.since(c.clock.Now()).serves(r.gvr.GroupResource()) {
			c.lose(namespace, r, naming(r.gvr, err), o)
			return
		}
		c.waiting.left(namespace.Name, namespace.UID, r.gvr, tally{})
	case err != nil:
		o.add(r, remainder{}, err)
	default:
		c.waiting.left(namespace.Name, namespace.UID, r.gvr, t)
		left, err := judge(namespace.Name, r, t, grace)
		o.add(r, left, err)
	}
}

// lose leaves a kind to the probes.
func (c *Controller) lose(namespace *corev1.Namespace, r resource, err error, o *outcome) {
	o.hold(err)
	c.waiting.lose(namespace.Name, namespace.UID, r.gvr, err, c.clock.Now())
	c.probe()
}

// deletePods deletes the pods and estimates from their grace periods how long they take.
func (c *Controller) deletePods(ctx context.Context, namespace *corev1.Namespace, r resource, _ tally) (tally, int64, error) {
	pods, err := c.client.CoreV1().Pods(namespace.Name).List(ctx, metav1.ListOptions{})
	if err != nil {
		return tally{}, 0, err
	}
	var t tally
	for i := range pods.Items {
		t.add(&pods.Items[i])
	}
	grace := podGrace(pods.Items, namespace.DeletionTimestamp.Time, c.clock.Now())
	t, err = c.deleteOpen(ctx, namespace.Name, r, t)
	return t, grace, err
}

// deleteKind deletes the objects of any other kind. Those that were on their way
// out already may have gone since.
func (c *Controller) deleteKind(ctx context.Context, namespace *corev1.Namespace, r resource, t tally) (tally, int64, error) {
	var err error
	if t.open == 0 {
		if t, err = c.tally(ctx, namespace.Name, r); err != nil {
			return t, 0, err
		}
	}
	t, err = c.deleteOpen(ctx, namespace.Name, r, t)
	return t, 0, err
}

// deleteOpen deletes what is not on its way out and looks what is left.
func (c *Controller) deleteOpen(ctx context.Context, namespace string, r resource, t tally) (tally, error) {
	if t.open == 0 {
		return t, nil
	}
	done, err := c.deleteCollection(ctx, namespace, r)
	if err == nil && !done {
		err = c.deleteEach(ctx, namespace, r)
	}
	if err != nil {
		return t, err
	}
	return c.tally(ctx, namespace, r)
}

// deleteCollection reports false when the kind has no such verb, or this once
// none that works.
func (c *Controller) deleteCollection(ctx context.Context, namespace string, r resource) (bool, error) {
	if !r.deleteCollection {
		return false, nil
	}
	err := c.metadata.Resource(r.gvr).Namespace(namespace).DeleteCollection(ctx,
		metav1.DeleteOptions{PropagationPolicy: &background}, metav1.ListOptions{})
	if unserved(err) {
		return false, nil // one by one, then; what is left, a list says
	}
	return true, err
}

func (c *Controller) deleteEach(ctx context.Context, namespace string, r resource) error {
	return c.each(ctx, namespace, r, pageSize, func(o *metav1.PartialObjectMetadata) error {
		if !needDeleting(o) {
			return nil
		}
		err := c.metadata.Resource(r.gvr).Namespace(namespace).Delete(ctx, o.Name, metav1.DeleteOptions{
			PropagationPolicy: &background, Preconditions: preconditions(o.UID),
		})
		if apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) {
			return nil
		}
		return err
	})
}

func preconditions(uid types.UID) *metav1.Preconditions {
	if uid == "" {
		return nil
	}
	return &metav1.Preconditions{UID: &uid}
}
