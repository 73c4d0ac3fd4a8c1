package daemonset

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/podwriter"
	"github.com/kube-kcm/kube-controller-manager/pkg/revisions"
)

// labelled gives revisions without a hash, which somebody else made, their name for it.
func (c *Controller) labelled(ctx context.Context, key types.NamespacedName, mine []*appsv1.ControllerRevision) ([]*appsv1.ControllerRevision, error) {
	for i, revision := range mine {
		if _, ok := revision.Labels[hashLabel]; ok {
			continue
		}
		changed, err := c.history.Renumber(ctx, key, revision, revision.Revision, map[string]string{hashLabel: revision.Name})
		if err != nil {
			return nil, err
		}
		mine[i] = changed
	}
	return mine, nil
}

// snapshot creates the revision of the present template. It returns nil when the
// name is taken by something else: the set gets another hash then, and its status
// wakes it again.
func (c *Controller) snapshot(ctx context.Context, key types.NamespacedName, ds *appsv1.DaemonSet, revision *appsv1.ControllerRevision) (*appsv1.ControllerRevision, error) {
	created, taken, err := c.history.Create(ctx, key, revision)
	switch {
	case err != nil:
		return nil, err
	case created != nil:
		return created, nil
	case revisions.Same(taken.Data.Raw, revision.Data.Raw, false):
		c.writes.Wrote(key, revisions.Resource, taken)
		return taken, nil
	}
	live, err := c.client.AppsV1().DaemonSets(ds.Namespace).Get(ctx, ds.Name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read daemon set %s, whose next hash is taken: %w", key, err)
	}
	if live.UID != ds.UID || live.Generation != ds.Generation || collisions(live) != collisions(ds) {
		c.writes.Wrote(key, setResource, live)
		return nil, fmt.Errorf("daemon set %s has changed since its next hash was found to be taken", key)
	}
	if err := c.writeStatus(ctx, key, live, afterCollision(live.Status)); err != nil {
		return nil, fmt.Errorf("count the collision of daemon set %s: %w", key, err)
	}
	return nil, nil
}

// align makes the current revision the latest and the only one with its template.
// It returns nil when pods were moved to it: their labels are judged once the
// cache shows them.
func (c *Controller) align(ctx context.Context, key types.NamespacedName, ds *appsv1.DaemonSet, l lineage) (*appsv1.ControllerRevision, error) {
	current := l.current
	if len(l.duplicates) > 0 {
		if moved, err := c.merge(ctx, key, ds, l); moved || err != nil {
			return nil, err
		}
	}
	if current.Revision >= l.number {
		return current, nil
	}
	return c.history.Renumber(ctx, key, current, l.number, nil)
}

// merge gives the pods of duplicates the hash of the current revision and deletes
// the duplicates. It tells whether there were such pods.
func (c *Controller) merge(ctx context.Context, key types.NamespacedName, ds *appsv1.DaemonSet, l lineage) (moved bool, err error) {
	all, err := cache.Lookup[corev1.Pod](c.pods, cache.ByController, string(ds.UID))
	if err != nil {
		return false, err
	}
	of := map[string]bool{}
	for _, duplicate := range l.duplicates {
		of[duplicate.Labels[hashLabel]] = true
	}
	hash := l.current.Labels[hashLabel]
	delete(of, hash)
	var errs []error
	for _, pod := range all {
		if !of[pod.Labels[hashLabel]] {
			continue
		}
		patch, err := labelPatch(pod, hash)
		if err == nil {
			_, err = c.writer.Patch(ctx, key, pod, patch)
			moved = moved || err == nil
		}
		if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
			// A pod that only seems to be gone would be of no revision.
			if gone, failed := c.writes.Gone(ctx, podwriter.Resource, pod, err); failed != nil {
				err = failed
			} else if gone {
				err = nil
			}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("move pod %s to revision %s: %w", pod.Name, l.current.Name, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return moved, err
	}
	return moved, c.history.Delete(ctx, key, l.duplicates)
}
