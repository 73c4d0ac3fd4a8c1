package daemonset

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/podwriter"
	"github.com/kube-kcm/kube-controller-manager/pkg/rejections"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/batch"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

// live reads the set from the API server.
func (c *Controller) live(key types.NamespacedName) func(context.Context) (metav1.Object, error) {
	return func(ctx context.Context) (metav1.Object, error) {
		return c.client.AppsV1().DaemonSets(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	}
}

// adopt makes the set the controller of the pods that match its selector and have
// none, and tells whether there were any.
func (c *Controller) adopt(ctx context.Context, key types.NamespacedName, ds *appsv1.DaemonSet, selector labels.Selector) (bool, error) {
	orphans, err := cache.Adoptable[corev1.Pod](c.pods, ds.Namespace, selector)
	if err != nil || len(orphans) == 0 {
		return false, err
	}
	adopted, err := c.writer.Adopt(ctx, key, ds, selector, ownership.Claim(ds, selector, orphans).Adopt, c.live(key))
	return len(adopted) > 0, err
}

// apply carries out the plan.
func (c *Controller) apply(ctx context.Context, key types.NamespacedName, ds *appsv1.DaemonSet, hash string, p plan) error {
	released := c.writer.Release(ctx, key, ds, p.release)
	created := c.create(ctx, key, ds, hash, p)
	_, removed := batch.Parallel(ctx, len(p.remove), func(ctx context.Context, i int) error {
		return c.remove(ctx, key, ds, p.remove[i])
	})
	return errors.Join(released, created, removed)
}

// create makes a pod for each of the nodes, in growing batches, so that a refusal
// that concerns all of them costs a few requests.
func (c *Controller) create(ctx context.Context, key types.NamespacedName, ds *appsv1.DaemonSet, hash string, p plan) error {
	nodes := p.create
	if len(nodes) == 0 {
		return nil
	}
	selector := metav1.FormatLabelSelector(ds.Spec.Selector)
	template, ref := podTemplate(ds, hash), ownership.ControllerRef(ds, kind)
	_, err := batch.SlowStart(ctx, len(nodes), 1, func(ctx context.Context, i int) error {
		pod := pods.FromTemplate(template, ds, ref)
		pod.Spec.Affinity = pinnedTo(pod.Spec.Affinity, nodes[i])
		if since, again := p.since[nodes[i]]; again {
			rejections.MarkSince(pod, since)
		}
		began := c.clock.Now()
		err := c.writer.Create(ctx, key, ds, selector, pod)
		if err == nil {
			c.reports.Sent(key, began)
		}
		return err
	})
	if err == nil || errors.Is(err, podwriter.ErrEnding) {
		return nil
	}
	return fmt.Errorf("create pods: %w", err)
}

// remove deletes a pod, and says first why when it ended by itself.
func (c *Controller) remove(ctx context.Context, key types.NamespacedName, ds *appsv1.DaemonSet, r removal) error {
	switch r.why {
	case failed:
		if !c.patient || !rejections.Rejected(r.pod) {
			c.backOff(failures(ds, r.node))
		}
		c.recorder.Eventf(ds, corev1.EventTypeWarning, "FailedDaemonPod", "Found failed daemon pod %s/%s on node %s, will try to kill it", r.pod.Namespace, r.pod.Name, r.node)
	case succeeded:
		c.recorder.Eventf(ds, corev1.EventTypeNormal, "SucceededDaemonPod", "Found succeeded daemon pod %s/%s on node %s, will try to delete it", r.pod.Namespace, r.pod.Name, r.node)
	}
	began := c.clock.Now()
	if err := c.writer.Delete(ctx, key, ds, r.pod); err != nil {
		return fmt.Errorf("delete pod %s: %w", r.pod.Name, err)
	}
	c.reports.Sent(key, began)
	return nil
}

// backOff has the next failed pod of a node wait longer, and forgets now and then
// those that failed long ago.
func (c *Controller) backOff(id string) {
	now := c.clock.Now()
	c.backoffs.Next(id, now)
	c.mu.Lock()
	due := now.Sub(c.swept) > backoffSweep
	if due {
		c.swept = now
	}
	c.mu.Unlock()
	if due {
		c.backoffs.GC()
	}
}

// report writes the status if it differs, unless it can wait: then it says how
// long. While pods cannot be made or deleted it does not, as the next try may be
// minutes away. On a conflict it tries once more on the live object, because the pods
// were counted regardless of what changed.
func (c *Controller) report(ctx context.Context, key types.NamespacedName, ds *appsv1.DaemonSet, status appsv1.DaemonSetStatus, failing bool) (time.Duration, error) {
	if reported(ds.Status, status) {
		return 0, nil
	}
	if !failing && underWay(ds, status) {
		if wait := c.reports.Wait(key); wait > 0 {
			return wait, nil
		}
	}
	began := c.clock.Now()
	err := c.writeStatus(ctx, key, ds, status)
	if apierrors.IsConflict(err) {
		live, getErr := c.client.AppsV1().DaemonSets(ds.Namespace).Get(ctx, ds.Name, metav1.GetOptions{})
		switch getErr = c.writes.UnlessGone(ctx, setResource, ds, getErr); {
		case getErr != nil:
			return 0, fmt.Errorf("read daemon set %s for its status: %w", key, getErr)
		case live.UID != ds.UID:
			return 0, nil
		}
		err = c.writeStatus(ctx, key, live, status)
	}
	if err = c.writes.UnlessGone(ctx, setResource, ds, err); err != nil {
		return 0, fmt.Errorf("write status of daemon set %s: %w", key, err)
	}
	c.reports.Sent(key, began)
	return 0, nil
}

func (c *Controller) writeStatus(ctx context.Context, key types.NamespacedName, ds *appsv1.DaemonSet, status appsv1.DaemonSetStatus) error {
	changed := ds.DeepCopy()
	changed.Status = status
	written, err := c.client.AppsV1().DaemonSets(ds.Namespace).UpdateStatus(ctx, changed, metav1.UpdateOptions{})
	if err == nil {
		c.writes.Wrote(key, setResource, written)
	}
	return err
}

// labelPatch gives a pod the hash of a revision.
func labelPatch(pod *corev1.Pod, hash string) ([]byte, error) {
	return json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID, "labels": map[string]string{hashLabel: hash}}})
}
