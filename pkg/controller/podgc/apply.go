package podgc

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/batch"
)

// atOnce bounds the deletions that are under way at one time.
const atOnce = 50

// collect deletes what the indexes show as surplus or stuck, and puts nodes that
// are absent into quarantine.
func (c *Controller) collect(ctx context.Context) (plan, error) {
	var do plan
	over, err1 := c.surplus()
	do.Terminated = len(over)
	stranded, err2 := c.onNodesOutOfService()
	do.OutOfService = len(stranded)
	unbound, err3 := cache.Lookup[corev1.Pod](c.pods, cache.UnscheduledTerminatingPods, cache.Yes)
	do.Unscheduled = len(unbound)
	do.AbsentNodes = absent(cache.Values(c.pods, cache.PodsByNode), c.cached)
	for _, node := range do.AbsentNodes {
		c.AddAfter(key{node}, quarantine)
	}
	return do, errors.Join(err1, err2, err3,
		c.deleteAll(ctx, pass, over, terminated),
		c.deleteAll(ctx, pass, stranded, outOfService),
		c.deleteAll(ctx, pass, beingDeleted(unbound), unscheduled))
}

func (c *Controller) surplus() ([]*corev1.Pod, error) {
	if c.threshold <= 0 || c.terminated.Load() <= int64(c.threshold) {
		return nil, nil
	}
	pods, err := cache.Lookup[corev1.Pod](c.pods, cache.TerminatedPods, cache.Yes)
	return surplus(pods, c.threshold), err
}

func (c *Controller) onNodesOutOfService() ([]*corev1.Pod, error) {
	nodes, err := cache.Lookup[corev1.Node](c.nodeIndex, cache.OutOfServiceNodes, cache.Yes)
	if err != nil {
		return nil, err
	}
	var stranded []*corev1.Pod
	for _, node := range nodes {
		if !outOfReach(node) {
			continue
		}
		pods, err := cache.Lookup[corev1.Pod](c.pods, cache.PodsByNode, node.Name)
		if err != nil {
			return nil, err
		}
		stranded = append(stranded, beingDeleted(pods)...)
	}
	return stranded, nil
}

// cached tells whether the cache has the node; one that cannot be read counts as there.
func (c *Controller) cached(node string) bool {
	_, err := c.nodes.Get(node)
	return !apierrors.IsNotFound(err)
}

// collectOrphans deletes the pods of a node that is still absent after its
// quarantine, unless a live read finds it.
func (c *Controller) collectOrphans(ctx context.Context, k key) (plan, error) {
	var do plan
	pods, err := cache.Lookup[corev1.Pod](c.pods, cache.PodsByNode, k.node)
	if err != nil || len(pods) == 0 || c.cached(k.node) {
		return do, err
	}
	_, err = c.client.CoreV1().Nodes().Get(ctx, k.node, metav1.GetOptions{})
	if err == nil {
		return do, nil
	}
	if !apierrors.IsNotFound(err) {
		return do, fmt.Errorf("get node %s: %w", k.node, err)
	}
	do.Orphaned = len(pods)
	return do, c.deleteAll(ctx, k, pods, orphaned)
}

func (c *Controller) deleteAll(ctx context.Context, k key, pods []*corev1.Pod, why reason) error {
	var errs []error
	for len(pods) > 0 {
		some := pods[:min(atOnce, len(pods))]
		pods = pods[len(some):]
		_, err := batch.Parallel(ctx, len(some), func(ctx context.Context, i int) error {
			if stepFor(some[i]) == (step{}) {
				return nil
			}
			tries.WithLabelValues(some[i].Namespace, string(why)).Inc()
			err := c.deletePod(ctx, k, some[i], why)
			if err != nil {
				deleteErrors.WithLabelValues(some[i].Namespace, string(why)).Inc()
			}
			return err
		})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// deletePod fails a pod that has not ended and deletes it without a grace period.
func (c *Controller) deletePod(ctx context.Context, k key, pod *corev1.Pod, why reason) error {
	do := stepFor(pod)
	client := c.client.CoreV1().Pods(pod.Namespace)
	if do.Fail {
		patch, err := failPatch(pod, why, c.clock.Now())
		if err != nil {
			return err
		}
		patched, err := client.Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
		if gone, lookErr := c.gone(ctx, pod, err); gone || lookErr != nil {
			return lookErr
		}
		if err != nil {
			return fmt.Errorf("set phase of pod %s/%s to Failed: %w", pod.Namespace, pod.Name, err)
		}
		c.writes.Wrote(k, podResource, patched)
	}
	if !do.Delete {
		return nil
	}
	err := client.Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if gone, lookErr := c.gone(ctx, pod, err); gone || lookErr != nil {
		return lookErr
	}
	if err != nil {
		return fmt.Errorf("delete pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	c.writes.Deleted(k, podResource, pod)
	return nil
}

// gone reports whether a refused write shows that nothing is left to do for the
// pod. A pod that was on its way out already is not looked at live: it is gone when
// the cache says so, and the next pass tries again until then.
func (c *Controller) gone(ctx context.Context, pod *corev1.Pod, refusal error) (bool, error) {
	switch {
	case !apierrors.IsNotFound(refusal) && !apierrors.IsConflict(refusal):
		return false, nil
	case pod.DeletionTimestamp != nil:
		return apierrors.IsNotFound(refusal), nil
	}
	return c.writes.Gone(ctx, podResource, pod, refusal)
}
