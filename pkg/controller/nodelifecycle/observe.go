package nodelifecycle

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// observed is what a plan is made from: a node, or what a pass over all nodes found.
type observed interface {
	plan(now time.Time) act.Plan
}

func (c *Controller) observe(ctx context.Context, key target) (observed, error) {
	switch key {
	case monitorPass:
		return c.pass(ctx), nil
	case evictionPass:
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.cluster.evict(c.now()), nil
	}
	return c.observeNode(key)
}

// pass has the cluster take in all nodes, and the live leases that it asks for.
func (c *Controller) pass(ctx context.Context) observedPass {
	o := observedPass{began: c.now(), period: c.period, grace: c.graces.monitor, leader: c.leader}
	if q := c.visit(); q.all || len(q.doubtful) > 0 {
		leases, reads, failed := c.readLeases(ctx, q)
		o.reads = reads
		c.mu.Lock()
		c.cluster.answer(q, leases, failed, c.now())
		c.mu.Unlock()
	}
	c.mu.Lock()
	o.findings = c.cluster.end()
	o.nodes = len(c.cluster.nodes)
	o.turn = c.cluster.evict(c.now())
	c.mu.Unlock()
	if o.change != unchanged {
		klog.FromContext(ctx).Info("All zones are disrupted, or no longer are", "now", o.change)
	}
	if o.unread != nil {
		klog.FromContext(ctx).Error(o.unread, "Leases of nodes could not be read live; who may be silent is not marked", "nodes", o.unproven)
	}
	for _, name := range o.pods {
		on, err := c.podsOn(name)
		if err != nil {
			o.err = err
			break
		}
		o.podsOf = append(o.podsOf, on...)
	}
	return o
}

// visit has the cluster take in what the caches show of all nodes.
func (c *Controller) visit() question {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.now()
	c.cluster.begin(last)
	for _, item := range c.nodes.List() {
		node, ok := item.(*corev1.Node)
		if !ok {
			continue
		}
		c.cluster.visit(node, c.leaseOf(node.Name))
		now := c.now()
		nodeSeconds.Observe(now.Sub(last).Seconds())
		last = now
	}
	return c.cluster.ask()
}

// readLeases reads leases live: those of the doubtful nodes, or all. It returns them by
// the names of their nodes, with how many requests were answered.
func (c *Controller) readLeases(ctx context.Context, q question) (found map[string]*coordinationv1.Lease, reads int, err error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	found = map[string]*coordinationv1.Lease{}
	read := func(options ...client.ListOption) error {
		list := &coordinationv1.LeaseList{}
		if err := c.live.List(ctx, list, append(options, client.InNamespace(corev1.NamespaceNodeLease))...); err != nil {
			return fmt.Errorf("list leases of nodes live: %w", err)
		}
		reads++
		for i := range list.Items {
			found[list.Items[i].Name] = &list.Items[i]
		}
		return nil
	}
	if q.all {
		return found, reads, read()
	}
	for _, name := range q.names {
		if err := read(client.MatchingFields{metav1.ObjectNameField: name}); err != nil {
			return found, reads, err
		}
		if found[name] == nil {
			found[name] = nil // read, and not there
		}
	}
	return found, reads, nil
}

// observeNode looks at a node that the last pass found silent once more.
func (c *Controller) observeNode(key target) (observed, error) {
	node, err := reconcile.Cached[corev1.Node](c.nodes, key)
	if err != nil {
		return nil, err
	}
	o := observedNode{node: node, lease: c.leaseOf(node.Name), memory: c.look(node), graces: c.graces}
	if o.memory.silent || o.memory.unanswered != "" {
		o.pods, err = c.podsOn(node.Name)
	}
	return o, err
}

func (c *Controller) look(node *corev1.Node) memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cluster.look(node, c.leaseOf(node.Name), c.now())
}

func (c *Controller) observePod(_ context.Context, key types.NamespacedName) (observedPod, error) {
	pod, err := reconcile.Cached[corev1.Pod](c.pods, key)
	if err != nil {
		return observedPod{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return observedPod{pod, c.cluster.notReady(pod.Spec.NodeName)}, nil
}

// podsOn are the keys of the pods of a node.
func (c *Controller) podsOn(node string) ([]types.NamespacedName, error) {
	pods, err := cache.Lookup[corev1.Pod](c.pods, cache.PodsByNode, node)
	if err != nil {
		return nil, fmt.Errorf("find pods of node %s: %w", node, err)
	}
	keys := make([]types.NamespacedName, 0, len(pods))
	for _, pod := range pods {
		keys = append(keys, types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	}
	return keys, nil
}

// leaseOf is the cached lease of a node; nil if there is none.
func (c *Controller) leaseOf(node string) *coordinationv1.Lease {
	lease, _ := reconcile.Cached[coordinationv1.Lease](c.leases, leaseKey(node))
	return lease
}

func (c *Controller) now() time.Time { return c.nodeRunner.Clock().Now() }
