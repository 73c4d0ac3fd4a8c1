package podgc

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
)

// observed is what a plan is made from.
type observed struct {
	key key
	// threshold is how many terminated pods may stay. They are here only if there are more.
	threshold  int
	terminated []*corev1.Pod
	// outOfService are the nodes with that taint, and their pods.
	outOfService []host
	// unscheduled are pods that are being deleted and never reached a node.
	unscheduled []*corev1.Pod
	// absent are nodes that pods are bound to and that the cache does not have.
	absent []string
	// orphaned are the pods of the key's node, which does not exist.
	orphaned []*corev1.Pod
	// err is what could not be read; the rest is collected all the same.
	err error
}

// host is a node and the pods that are bound to it.
type host struct {
	node *corev1.Node
	pods []*corev1.Pod
}

func (c *Controller) observe(ctx context.Context, k key) (observed, error) {
	o := observed{key: k, threshold: c.threshold}
	if k != pass {
		var err error
		o.orphaned, err = c.orphans(ctx, k.node)
		return o, err
	}
	var err1, err2, err3 error
	if c.threshold > 0 && c.terminated.Load() > int64(c.threshold) {
		o.terminated, err1 = cache.Lookup[corev1.Pod](c.pods, cache.TerminatedPods, cache.Yes)
	}
	o.outOfService, err2 = c.hosts()
	o.unscheduled, err3 = cache.Lookup[corev1.Pod](c.pods, cache.UnscheduledTerminatingPods, cache.Yes)
	o.absent = absent(cache.Values(c.pods, cache.PodsByNode), c.cached)
	o.err = errors.Join(err1, err2, err3)
	return o, nil
}

func (c *Controller) hosts() ([]host, error) {
	nodes, err := cache.Lookup[corev1.Node](c.nodes, cache.OutOfServiceNodes, cache.Yes)
	if err != nil {
		return nil, err
	}
	hosts := make([]host, 0, len(nodes))
	for _, node := range nodes {
		pods, err := cache.Lookup[corev1.Pod](c.pods, cache.PodsByNode, node.Name)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, host{node, pods})
	}
	return hosts, nil
}

// cached reports whether the cache has the node; one that cannot be read counts as there.
func (c *Controller) cached(node string) bool {
	_, exists, err := c.nodes.GetByKey(node)
	return exists || err != nil
}

// orphans are the pods of a node that is still absent after its quarantine, unless a
// live read finds it.
func (c *Controller) orphans(ctx context.Context, node string) ([]*corev1.Pod, error) {
	pods, err := cache.Lookup[corev1.Pod](c.pods, cache.PodsByNode, node)
	if err != nil || len(pods) == 0 || c.cached(node) {
		return nil, err
	}
	err = c.live.Get(ctx, types.NamespacedName{Name: node}, &corev1.Node{})
	switch {
	case err == nil:
		return nil, nil
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("get node %s: %w", node, err)
	}
	return pods, nil
}
