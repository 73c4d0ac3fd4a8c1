package nodelifecycle

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// passSummary is shown for the monitor pass at the debug endpoint.
type passSummary struct {
	Nodes int               `json:"nodes"`
	Zones map[string]string `json:"zones,omitempty"`
	Woken int               `json:"woken"`
	Why   string            `json:"why"`
}

// monitor looks at all nodes, from caches alone, and wakes those that need a write.
func (c *Controller) monitor(ctx context.Context) runner.Result {
	start := c.clock.Now()
	f, summary := c.pass()
	for _, name := range f.wake {
		c.nodeRunner.Add(target{node: name})
	}
	var err error
	for _, name := range f.pods {
		if err = c.wakePodsOn(name); err != nil {
			break
		}
	}
	for _, node := range f.registered {
		c.nodeEvent(node, "RegisteredNode", fmt.Sprintf("Registered Node %s in Controller", node.Name))
	}
	for _, node := range f.removed {
		c.nodeEvent(node, "RemovingNode", fmt.Sprintf("Removing Node %s from Controller", node.Name))
	}
	if f.change != unchanged {
		klog.FromContext(ctx).Info("The disruption of the cluster has changed", "now", f.change)
	}
	c.evict()
	passSeconds.Observe(c.clock.Since(start).Seconds())
	return runner.Done(err).Because(summary).LookAgain(c.period)
}

// pass runs the pass itself. The verdict stays valid, as there is one key for the pass.
func (c *Controller) pass() (*verdict, *passSummary) {
	c.mu.Lock()
	defer c.mu.Unlock()
	last := c.clock.Now()
	c.cluster.begin(last)
	for _, item := range c.nodeStore.List() {
		node, ok := item.(*corev1.Node)
		if !ok {
			continue
		}
		c.cluster.visit(node, c.leaseAt)
		now := c.clock.Now()
		nodeSeconds.Observe(now.Sub(last).Seconds())
		last = now
	}
	f := c.cluster.end()
	report(c.cluster, f)
	s := &passSummary{Nodes: len(c.cluster.nodes), Woken: len(f.wake), Why: "all zones as before"}
	for name, z := range c.cluster.zones {
		if z.state != stateNormal {
			if s.Zones == nil {
				s.Zones = map[string]string{}
			}
			s.Zones[name] = fmt.Sprintf("%s: %d of %d not ready, %g evictions a second", z.state, z.notReady, z.size(), z.evictions.rate)
		}
	}
	if f.change != unchanged {
		s.Why = string(f.change)
	}
	return f, s
}

// evict wakes the nodes that the rates of their zones let through now, and
// comes back for the next.
func (c *Controller) evict() runner.Result {
	now := c.clock.Now()
	c.mu.Lock()
	through := c.cluster.evict(now)
	wait, more := c.cluster.nextEviction(now)
	c.mu.Unlock()
	for _, name := range through {
		c.nodeRunner.Add(target{node: name})
	}
	if more {
		c.nodeRunner.AddAfter(evictionPass, wait)
	}
	return runner.Done()
}

// wakePodsOn wakes the pods of a node that is not ready.
func (c *Controller) wakePodsOn(node string) error {
	pods, err := cache.Lookup[corev1.Pod](c.podIndex, cache.PodsByNode, node)
	if err != nil {
		return fmt.Errorf("find pods of node %s: %w", node, err)
	}
	for _, pod := range pods {
		c.podRunner.Add(types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name})
	}
	return nil
}

func (c *Controller) nodeEvent(node *corev1.Node, reason, what string) {
	c.recorder.Eventf(referTo(node), corev1.EventTypeNormal, reason, "Node %s event: %s", node.Name, what)
}

func referTo(node *corev1.Node) *corev1.ObjectReference {
	return &corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: node.Name, UID: node.UID}
}
