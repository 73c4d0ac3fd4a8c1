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
	"github.com/kube-kcm/kube-controller-manager/pkg/rejections"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/batch"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
)

var (
	// errEnding stops creation in a namespace that is on its way out. It is not a
	// failure: nothing can be created there any more, so nothing is retried.
	errEnding = errors.New("namespace is terminating")
	// errLate tells that a create whose answer was lost did make a pod, which the
	// cache does not show yet.
	errLate = errors.New("waiting for the cache to show pods of an earlier attempt")
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
	claims := ownership.Claim(ds, selector, orphans)
	mayAdopt := ownership.Recheck(ds, c.live(key))
	adopted := make([]bool, len(claims.Adopt))
	_, err = batch.SlowStart(ctx, len(claims.Adopt), 1, func(ctx context.Context, i int) error {
		pod := claims.Adopt[i]
		if err := mayAdopt(ctx); err != nil {
			return err
		}
		patch, err := ownership.AdoptPatch(pod.UID, ds, kind)
		if err == nil {
			adopted[i], err = c.patch(ctx, key, pod, patch)
		}
		if err != nil {
			return fmt.Errorf("adopt pod %s: %w", pod.Name, err)
		}
		return nil
	})
	for _, did := range adopted {
		if did {
			return true, err
		}
	}
	return false, err
}

// release lets go of pods that the selector no longer matches.
func (c *Controller) release(ctx context.Context, key types.NamespacedName, ds *appsv1.DaemonSet, all []*corev1.Pod) error {
	_, err := batch.SlowStart(ctx, len(all), 1, func(ctx context.Context, i int) error {
		patch, err := ownership.ReleasePatch(all[i].UID, ds.UID)
		if err == nil {
			_, err = c.patch(ctx, key, all[i], patch)
		}
		// Invalid: the pod has no owner references left, or is another pod by now.
		if err != nil && !apierrors.IsInvalid(err) {
			return fmt.Errorf("release pod %s: %w", all[i].Name, err)
		}
		return nil
	})
	return err
}

// patch changes the metadata of a pod, and tells whether the pod was still there.
func (c *Controller) patch(ctx context.Context, key types.NamespacedName, pod *corev1.Pod, patch []byte) (bool, error) {
	patched, err := c.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	c.writes.Wrote(key, podResource, patched)
	return true, nil
}

// apply carries out the plan.
func (c *Controller) apply(ctx context.Context, key types.NamespacedName, ds *appsv1.DaemonSet, hash string, p plan) error {
	released := c.release(ctx, key, ds, p.release)
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
	if err := c.lookForLate(ctx, key, ds); err != nil {
		return err
	}
	template, ref := podTemplate(ds, hash), ownership.ControllerRef(ds, kind)
	_, err := batch.SlowStart(ctx, len(nodes), 1, func(ctx context.Context, i int) error {
		pod := pods.FromTemplate(template, ds, ref)
		pod.Spec.Affinity = pinnedTo(pod.Spec.Affinity, nodes[i])
		if since, again := p.since[nodes[i]]; again {
			rejections.MarkSince(pod, since)
		}
		return c.createOne(ctx, key, ds, pod)
	})
	if err == nil || errors.Is(err, errEnding) {
		return nil
	}
	return fmt.Errorf("create pods: %w", err)
}

func (c *Controller) createOne(ctx context.Context, key types.NamespacedName, ds *appsv1.DaemonSet, pod *corev1.Pod) error {
	began := c.clock.Now()
	created, err := c.client.CoreV1().Pods(pod.Namespace).Create(ctx, pod, metav1.CreateOptions{})
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return errEnding
	case err != nil:
		if consistency.OutcomeUnknown(err) {
			c.doubts.Raise(key)
		}
		c.recorder.Eventf(ds, corev1.EventTypeWarning, "FailedCreate", "Error creating: %v", err)
		return err
	}
	c.writes.Wrote(key, podResource, created)
	c.reports.Sent(key, began)
	c.recorder.Eventf(ds, corev1.EventTypeNormal, "SuccessfulCreate", "Created pod: %v", created.Name)
	return nil
}

// lookForLate lists live, when a create of the set may have been carried out
// without an answer, and fails while the cache does not show what is there.
func (c *Controller) lookForLate(ctx context.Context, key types.NamespacedName, ds *appsv1.DaemonSet) error {
	if !c.doubts.About(key) {
		return nil
	}
	live, err := c.client.CoreV1().Pods(key.Namespace).List(ctx, metav1.ListOptions{LabelSelector: metav1.FormatLabelSelector(ds.Spec.Selector)})
	if err != nil {
		return fmt.Errorf("look for pods of an earlier attempt: %w", err)
	}
	for i := range live.Items {
		if pod := &live.Items[i]; metav1.IsControlledBy(pod, ds) {
			c.writes.Wrote(key, podResource, pod)
		}
	}
	c.doubts.Settle(key)
	// Nodes that were judged before the list may have got their pod since.
	return errLate
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
	err := c.client.CoreV1().Pods(r.pod.Namespace).Delete(ctx, r.pod.Name, *metav1.NewPreconditionDeleteOptions(string(r.pod.UID)))
	switch {
	case apierrors.IsNotFound(err) || apierrors.IsConflict(err):
		// Gone, or replaced by another of the same name: only the cache does not know yet.
	case err != nil:
		c.recorder.Eventf(ds, corev1.EventTypeWarning, "FailedDelete", "Error deleting: %v", err)
		return fmt.Errorf("delete pod %s: %w", r.pod.Name, err)
	default:
		c.reports.Sent(key, began)
		c.recorder.Eventf(ds, corev1.EventTypeNormal, "SuccessfulDelete", "Deleted pod: %v", r.pod.Name)
	}
	c.writes.Deleted(key, podResource, r.pod)
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
// long. On a conflict it tries once more on the live object, because the pods
// were counted regardless of what changed.
func (c *Controller) report(ctx context.Context, key types.NamespacedName, ds *appsv1.DaemonSet, status appsv1.DaemonSetStatus) (time.Duration, error) {
	if reported(ds.Status, status) {
		return 0, nil
	}
	if underWay(ds, status) {
		if wait := c.reports.Wait(key); wait > 0 {
			return wait, nil
		}
	}
	began := c.clock.Now()
	err := c.writeStatus(ctx, key, ds, status)
	if apierrors.IsConflict(err) {
		live, getErr := c.client.AppsV1().DaemonSets(ds.Namespace).Get(ctx, ds.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(getErr):
			return 0, nil
		case getErr != nil:
			return 0, fmt.Errorf("read daemon set %s for its status: %w", key, getErr)
		case live.UID != ds.UID:
			return 0, nil
		}
		err = c.writeStatus(ctx, key, live, status)
	}
	if err != nil && !apierrors.IsNotFound(err) {
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
