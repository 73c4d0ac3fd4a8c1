package nodeipam

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

const (
	// page is how many nodes are listed at once.
	page = 500
	// listAgain is how long after a list that failed the next one is tried.
	listAgain = time.Second
	// listRetry is when it is tried at the latest.
	listRetry = 10 * time.Second
)

// observed is a node and what it is to get.
type observed struct {
	node *corev1.Node
	// behind: the cache does not show yet what a live look has shown.
	behind bool
	// outside is what is wrong with the CIDRs that it has.
	outside error
	// proposal is what it is to get when it has none; it is the node's from now on.
	proposal
	// looked: the node was read live.
	looked bool
}

func (c *Controller) observe(ctx context.Context, name string) (observed, error) {
	if err := c.list(ctx, name); err != nil {
		return observed{}, err
	}
	cached, err := reconcile.Cached[corev1.Node](c.nodes, name)
	if behind, err := c.forget(ctx, name, cached); err != nil || behind {
		return observed{node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, behind: behind}, err
	}
	if err != nil {
		return observed{}, err
	}
	o := observed{node: cached}
	if _, doubted := c.doubts.LoadAndDelete(cached.UID); doubted && len(cidrsOf(cached)) == 0 {
		if o.node, err = c.look(ctx, name); err != nil {
			c.doubts.Store(cached.UID, true)
			return observed{}, err
		}
		if o.looked = true; o.node == nil || o.node.UID != cached.UID {
			return observed{node: cached, behind: true}, nil
		}
		if len(cidrsOf(o.node)) == 0 {
			c.book.lost(name, cached.UID)
		}
	}
	c.propose(&o)
	return o, nil
}

// propose notes what the node has, or holds blocks for it. One that is being deleted gets
// none, and its turn goes to the next.
func (c *Controller) propose(o *observed) {
	n := node{o.node.Name, o.node.UID, cidrsOf(o.node)}
	switch {
	case len(n.cidrs) > 0:
		var next []string
		next, o.outside = c.book.show(n)
		c.wake(next)
	case o.node.DeletionTimestamp == nil:
		o.proposal = c.book.propose(n)
	default:
		c.wake(c.book.leaves(n.name))
	}
}

// forget takes back what a node holds that is gone, and reports whether the cache may
// only be behind. A cache that has shown a node shows too that it has gone.
func (c *Controller) forget(ctx context.Context, name string, cached *corev1.Node) (behind bool, err error) {
	uid, shown, holds := c.book.of(name)
	switch {
	case cached != nil && cached.UID == uid:
		return false, nil
	case holds && !shown:
		live, err := c.look(ctx, name)
		if err != nil || live != nil && live.UID == uid {
			return err == nil, err
		}
	}
	if holds || cached == nil {
		c.wake(c.book.gone(name, uid))
	}
	return false, nil
}

// look reads a node live; nil when there is none.
func (c *Controller) look(ctx context.Context, name string) (*corev1.Node, error) {
	live, err := reconcile.Live[corev1.Node](ctx, c.live, client.ObjectKey{Name: name})
	if err != nil {
		return nil, fmt.Errorf("read the node live: %w", err)
	}
	return live, nil
}

func (c *Controller) wake(names []string) {
	for _, name := range names {
		c.Add(name)
	}
}

// list notes, once, what all nodes have, as the API server itself says: caches may miss
// what was written last. No block is handed out before.
func (c *Controller) list(ctx context.Context, name string) error {
	c.start.Lock()
	defer c.start.Unlock()
	now := c.Clock().Now()
	switch {
	case c.listed:
		return nil
	case c.failed != nil && now.Before(c.failedAt.Add(listAgain)):
		return c.failed
	}
	found, err := c.all(ctx)
	if err != nil {
		if !now.Before(c.retryAt) { // sooner than the retries of the nodes, which grow
			c.retryAt = now.Add(listRetry)
			c.AddAfter(name, listRetry)
		}
		c.failed, c.failedAt = fmt.Errorf("list all nodes to see which blocks are used: %w", err), now
		return c.failed
	}
	for _, n := range found {
		c.book.found(n)
		c.Add(n.name) // one that the cache never shows is gone
	}
	c.listed = true
	return nil
}

// all lists the nodes, some at a time, all as they were at one moment.
func (c *Controller) all(ctx context.Context) ([]node, error) {
	var all []node
	for next := ""; ; {
		var list corev1.NodeList
		if err := c.live.List(ctx, &list, client.Limit(page), client.Continue(next)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			all = append(all, node{list.Items[i].Name, list.Items[i].UID, cidrsOf(&list.Items[i])})
		}
		if next = list.Continue; next == "" {
			return all, nil
		}
	}
}

// cidrsOf returns what a node has.
func cidrsOf(n *corev1.Node) []string {
	if len(n.Spec.PodCIDRs) == 0 && n.Spec.PodCIDR != "" {
		return []string{n.Spec.PodCIDR}
	}
	return n.Spec.PodCIDRs
}
