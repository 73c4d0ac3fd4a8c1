package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const (
	// zones are how many zones the simulated nodes are in; the first one is lost.
	zones = 3
	// zoneGrace is longer than the lease of a node.
	zoneGrace = 25 * time.Second
	// evicting is the time in which the taints that evict are counted: one at once, and five
	// more by --node-eviction-rate=0.1, the default.
	evicting = 55 * time.Second
)

func init() {
	register(&scenario{
		name: "zoneloss", order: 20, quick: 6 * time.Minute, full: 30 * time.Minute, leaseSeconds: 20,
		about: "All nodes of one of three zones fall silent. Their pods are marked not ready, and the nodes are tainted at the rate of evictions. The time holds the grace period, which is the same for both.",
		sizes: []size{
			{"nodes", 900, 60, "nodes of zoneloss"},
			{"pods", 50, 10, "pods on each node that is lost"},
		},
		flags: []string{"--node-monitor-grace-period=" + zoneGrace.String()},
		run:   runZoneloss,
	})
}

func runZoneloss(ctx context.Context, w *world) error {
	if err := w.begin(ctx, w.sizes["nodes"]); err != nil {
		return err
	}
	if w.sizes["pods"] == 0 {
		return errors.New("the nodes that are lost have no pods; use more pods")
	}
	silent, pods := map[string]bool{}, map[string]string{}
	for i := 0; i < w.sizes["nodes"]; i += zones {
		silent[nodeName(i)] = true
		for j := range w.sizes["pods"] {
			pods[fmt.Sprintf("web-%d-%d", i, j)] = nodeName(i)
		}
	}
	ready, err := w.expectReadyPods(ctx, len(pods), nil)
	if err != nil {
		return err
	}
	w.say("%d pods on %d nodes", len(pods), len(silent))
	if err := w.podsOnNodes(ctx, pods); err != nil {
		return err
	}
	if _, err := ready.wait(ctx); err != nil {
		return err
	}
	if err := pause(ctx, 2*tail); err != nil {
		return err
	}
	return w.loseZone(ctx, silent, pods)
}

// podsOnNodes creates pods on the nodes that the map names.
func (w *world) podsOnNodes(ctx context.Context, pods map[string]string) error {
	var names []string
	for name := range pods {
		names = append(names, name)
	}
	client := w.load().CoreV1().Pods(namespace)
	return parallel(ctx, workers, len(names), func(i int) error {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: names[i]}, Spec: template("web", firstImage).Spec}
		pod.Spec.NodeName = pods[names[i]]
		_, err := client.Create(ctx, pod, metav1.CreateOptions{})
		return err
	})
}

// loseZone silences nodes, waits until their pods are not ready, and counts evictions.
func (w *world) loseZone(ctx context.Context, silent map[string]bool, pods map[string]string) error {
	unready, err := w.expect(ctx, "pods are not ready", len(pods), w.watches.Core().V1().Pods().Informer(), func(object any) string {
		if pod, ok := object.(*corev1.Pod); ok && silent[pod.Spec.NodeName] && !podReady(pod) {
			return pod.Name
		}
		return ""
	})
	if err != nil {
		return err
	}
	followed, err := w.followLosses(ctx, silent)
	if err != nil {
		return err
	}
	defer followed.stop()
	mark := w.Audit.Mark()
	err = w.step(ctx, report.Step{Name: "lose a zone", Objects: len(pods), Unit: "pod"}, func(ctx context.Context) ([]report.Latency, error) {
		var names []string
		for name := range silent {
			names = append(names, name)
		}
		lost := parallel(ctx, workers, len(names), func(i int) error { return w.Silence(ctx, names[i]) })
		took, waited := unready.wait(ctx)
		return []report.Latency{report.Latencies("pod not ready", took)}, errors.Join(lost, waited)
	})
	if err != nil {
		return err
	}
	if err := w.step(ctx, report.Step{Name: "taint its nodes", Objects: len(silent), Unit: "node"}, func(ctx context.Context) ([]report.Latency, error) {
		return nil, pause(ctx, evicting+10*time.Second)
	}); err != nil {
		return err
	}
	figures, err := zoneFigures(followed.end(), pods, w.Audit.All(mark), zoneGrace)
	w.addFigures(figures)
	return err
}

// zoneFigures are how far apart the first and the last pod of a lost zone were marked, how
// long after the grace period of its node each one was, and how many nodes were tainted in
// the time of evicting, at most.
func zoneFigures(seen map[string]nodeLoss, pods map[string]string, events iter.Seq[harness.TimedAuditEvent], grace time.Duration) ([]report.Figure, error) {
	writes := writesOf(events)
	var marked []time.Time
	var late []time.Duration
	for pod, node := range pods {
		at, ok := writes.marks[pod]
		if !ok || seen[node].heartbeat.IsZero() {
			return nil, fmt.Errorf("pod %s on node %s: no heartbeat, or no write that marks the pod", pod, node)
		}
		marked = append(marked, at)
		late = append(late, at.Sub(seen[node].heartbeat.Add(grace)))
	}
	var tainted []time.Time
	for _, node := range seen {
		if !node.tainted.IsZero() {
			tainted = append(tainted, node.tainted)
		}
	}
	slices.SortFunc(marked, time.Time.Compare)
	l := report.Latencies("pod marked after its node's grace", late)
	return []report.Figure{
		{Name: "last pod marked after the first", Unit: "s", Value: marked[len(marked)-1].Sub(marked[0]).Seconds()},
		{Name: l.Of + ", p50", Unit: "s", Value: l.P50},
		{Name: l.Of + ", max", Unit: "s", Value: l.Max},
		{Name: "nodes tainted within 55 s, at most", Value: float64(most(tainted, evicting))},
	}, nil
}
