package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// nodeLoss is what the watches have shown of a node that fell silent, with the
// time of each event.
type nodeLoss struct {
	// heartbeat is the last one, unknown the first event whose Ready condition is
	// Unknown, tainted the first one with the taint that evicts.
	heartbeat, unknown, tainted time.Time
}

// hadLease begins with the renewal that happened before anybody listened.
func (l *nodeLoss) hadLease(lease *coordinationv1.Lease) {
	if t := lease.Spec.RenewTime; t != nil && t.After(l.heartbeat) {
		l.heartbeat = t.Time
	}
}

// sawLease notes a renewal; a lease without a change is none.
func (l *nodeLoss) sawLease(before, after *coordinationv1.Lease, now time.Time) {
	if !before.Spec.RenewTime.Equal(after.Spec.RenewTime) {
		l.heartbeat = now
	}
}

func (l *nodeLoss) sawNode(before, after *corev1.Node, now time.Time) {
	was, is := readyOf(before), readyOf(after)
	switch {
	case is.Status != corev1.ConditionUnknown && !is.LastHeartbeatTime.Equal(&was.LastHeartbeatTime):
		l.heartbeat = now
	case is.Status == corev1.ConditionUnknown && l.unknown.IsZero():
		l.unknown = now
	}
	if l.tainted.IsZero() && unreachable(after) {
		l.tainted = now
	}
}

func readyOf(node *corev1.Node) corev1.NodeCondition {
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c
		}
	}
	return corev1.NodeCondition{}
}

// unreachable reports whether the node evicts pods because it is silent.
func unreachable(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(t corev1.Taint) bool {
		return t.Key == corev1.TaintNodeUnreachable && t.Effect == corev1.TaintEffectNoExecute
	})
}

// lossWatch follows the nodes that are about to fall silent.
type lossWatch struct {
	stop func()

	mu    sync.Mutex
	nodes map[string]*nodeLoss
}

// followLosses listens to the heartbeats and conditions of these nodes from now on.
func (w *world) followLosses(ctx context.Context, silent map[string]bool) (*lossWatch, error) {
	l := &lossWatch{nodes: map[string]*nodeLoss{}}
	for name := range silent {
		l.nodes[name] = &nodeLoss{}
	}
	leases, nodes := w.watches.Coordination().V1().Leases().Informer(), w.watches.Core().V1().Nodes().Informer()
	ofLeases, err := leases.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			lease := object.(*coordinationv1.Lease)
			l.note(lease.Name, func(n *nodeLoss) { n.hadLease(lease) })
		},
		UpdateFunc: func(before, after any) {
			lease := after.(*coordinationv1.Lease)
			l.note(lease.Name, func(n *nodeLoss) { n.sawLease(before.(*coordinationv1.Lease), lease, time.Now()) })
		},
	})
	if err != nil {
		return nil, fmt.Errorf("watch the leases of nodes: %w", err)
	}
	ofNodes, err := nodes.AddEventHandler(cache.ResourceEventHandlerFuncs{UpdateFunc: func(before, after any) {
		node := after.(*corev1.Node)
		l.note(node.Name, func(n *nodeLoss) { n.sawNode(before.(*corev1.Node), node, time.Now()) })
	}})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("watch nodes: %w", err), leases.RemoveEventHandler(ofLeases))
	}
	l.stop = func() { _, _ = leases.RemoveEventHandler(ofLeases), nodes.RemoveEventHandler(ofNodes) }
	w.watches.StartWithContext(w.watching)
	if !cache.WaitForCacheSync(ctx.Done(), ofLeases.HasSynced, ofNodes.HasSynced) {
		return nil, fmt.Errorf("watch nodes and leases: %w", context.Cause(ctx))
	}
	return l, nil
}

func (l *lossWatch) note(node string, saw func(*nodeLoss)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := l.nodes[node]; n != nil {
		saw(n)
	}
}

// end stops listening and returns what was seen.
func (l *lossWatch) end() map[string]nodeLoss {
	l.stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	seen := map[string]nodeLoss{}
	for name, n := range l.nodes {
		seen[name] = *n
	}
	return seen
}

// lossWrites are the writes of the controllers that a loss is about, by the time
// at which the API server took them.
type lossWrites struct {
	// statuses and nodes are those of each node's status and of each node,
	// marks and deletions the first of each pod's status and of each pod that was not refused.
	statuses, nodes  map[string][]time.Time
	marks, deletions map[string]time.Time
}

func writesOf(events iter.Seq[harness.TimedAuditEvent]) lossWrites {
	w := lossWrites{statuses: map[string][]time.Time{}, nodes: map[string][]time.Time{}, marks: map[string]time.Time{}, deletions: map[string]time.Time{}}
	for event := range events {
		if event.ObjectRef == nil || event.ResponseStatus.Code >= 300 || !event.Write() {
			continue
		}
		name := event.ObjectRef.Name
		switch event.Verb + " " + subject(event.AuditEvent) {
		case "update nodes/status", "patch nodes/status":
			w.statuses[name] = append(w.statuses[name], event.Received)
		case "update nodes", "patch nodes":
			w.nodes[name] = append(w.nodes[name], event.Received)
		case "update pods/status", "patch pods/status":
			first(w.marks, name, event.Received)
		case "delete pods":
			first(w.deletions, name, event.Received)
		}
	}
	return w
}

// first keeps the earliest time.
func first(times map[string]time.Time, name string, at time.Time) {
	if known, ok := times[name]; !ok || at.Before(known) {
		times[name] = at
	}
}

// shown is the write that a watch event at that time brought: the last one before it.
func shown(writes []time.Time, at time.Time) (time.Time, bool) {
	var last time.Time
	for _, t := range writes {
		if !t.After(at) && t.After(last) {
			last = t
		}
	}
	return last, !last.IsZero()
}

// lossFigures are how long after the end of its grace period each node was
// marked unknown, and how long after the end of its toleration each pod on it,
// which pods names with their nodes, was deleted.
func lossFigures(seen map[string]nodeLoss, pods map[string]string, events iter.Seq[harness.TimedAuditEvent], grace, tolerated time.Duration) ([]report.Figure, error) {
	writes := writesOf(events)
	var marking, deleting []time.Duration
	for name, node := range seen {
		marked, ok := shown(writes.statuses[name], node.unknown)
		if !ok || node.heartbeat.IsZero() {
			return nil, fmt.Errorf("node %s: no heartbeat, or no write that marks it unknown", name)
		}
		marking = append(marking, marked.Sub(node.heartbeat.Add(grace)))
	}
	for pod, name := range pods {
		tainted, ok := shown(writes.nodes[name], seen[name].tainted)
		deleted, gone := writes.deletions[pod]
		if !ok || !gone {
			return nil, fmt.Errorf("pod %s on node %s: no taint, or no deletion of the pod", pod, name)
		}
		deleting = append(deleting, deleted.Sub(tainted.Add(tolerated)))
	}
	var figures []report.Figure
	for _, l := range []report.Latency{report.Latencies("node marked unknown after its grace", marking), report.Latencies("pod deleted after its toleration", deleting)} {
		figures = append(figures, report.Figure{Name: l.Of + ", p50", Unit: "s", Value: l.P50}, report.Figure{Name: l.Of + ", max", Unit: "s", Value: l.Max})
	}
	return figures, nil
}
