package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
)

const (
	// nodeGrace is how long a node may be silent, tolerated how long pods stay on it then.
	nodeGrace, tolerated = 15 * time.Second, time.Second
)

func init() {
	register(&scenario{
		name: "nodeloss", order: 3, quick: 4 * time.Minute, full: 20 * time.Minute, leaseSeconds: 8,
		about: "A part of the nodes falls silent. They are tainted, their pods, which tolerate that for a second, are evicted and replaced on living nodes. The time holds the grace period, which is the same for both.",
		sizes: []size{
			{"nodes", 200, 20, "nodes of nodeloss"},
			{"deployments", 20, 5, "Deployments of nodeloss"},
			{"replicas", 50, 20, "pods of each Deployment of nodeloss"},
			{"percent", 30, 30, "part of the nodes that is lost"},
		},
		flags: []string{"--node-monitor-grace-period=" + nodeGrace.String(), "--node-eviction-rate=100"},
		run:   runNodeloss,
	})
}

func runNodeloss(ctx context.Context, w *world) error {
	if err := w.begin(ctx, w.sizes["nodes"]); err != nil {
		return err
	}
	seconds := int64(tolerated / time.Second)
	pods, err := w.expectReadyPods(ctx, w.sizes["deployments"]*w.sizes["replicas"], nil)
	if err != nil {
		return err
	}
	if err := w.deploy(ctx, w.sizes["deployments"], w.sizes["replicas"], func(d *appsv1.Deployment) {
		for _, key := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
			d.Spec.Template.Spec.Tolerations = append(d.Spec.Template.Spec.Tolerations, corev1.Toleration{
				Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds})
		}
	}); err != nil {
		return err
	}
	if _, err := pods.wait(ctx); err != nil {
		return err
	}
	if err := pause(ctx, 2*tail); err != nil {
		return err
	}
	return w.lose(ctx, w.sizes["nodes"]*w.sizes["percent"]/100)
}

// lose silences nodes and waits until their pods run elsewhere.
func (w *world) lose(ctx context.Context, count int) error {
	before, err := w.watches.Core().V1().Pods().Lister().Pods(namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	silent, known, lost := map[string]bool{}, map[string]bool{}, map[string]string{}
	for i := range count {
		silent[fmt.Sprintf("node-%d", i)] = true
	}
	for _, pod := range before {
		known[pod.Name] = true
		if silent[pod.Spec.NodeName] {
			lost[pod.Name] = pod.Spec.NodeName
		}
	}
	if len(lost) == 0 {
		return errors.New("the nodes that are lost have no pods; use more pods")
	}
	tainted, err := w.expect(ctx, "nodes are tainted", count, w.watches.Core().V1().Nodes().Informer(), func(object any) string {
		if node, ok := object.(*corev1.Node); ok && silent[node.Name] && unreachable(node) {
			return node.Name
		}
		return ""
	})
	if err != nil {
		return err
	}
	replaced, err := w.expectReadyPods(ctx, len(lost), known)
	if err != nil {
		return err
	}
	followed, err := w.followLosses(ctx, silent)
	if err != nil {
		return err
	}
	mark := w.Audit.Mark()
	err = w.step(ctx, report.Step{Name: "lose nodes", Objects: len(lost), Unit: "pod"}, func(ctx context.Context) ([]report.Latency, error) {
		err := parallel(ctx, workers, count, func(i int) error {
			name := fmt.Sprintf("node-%d", i)
			tainted.ask(name)
			return w.Silence(ctx, name)
		})
		nodes, tainting := tainted.wait(ctx)
		pods, replacing := replaced.wait(ctx)
		return []report.Latency{report.Latencies("node tainted", nodes), report.Latencies("pod replaced", pods)}, errors.Join(err, tainting, replacing)
	})
	seen := followed.end()
	if err != nil {
		return err
	}
	figures, err := lossFigures(seen, lost, w.Audit.All(mark), nodeGrace, tolerated)
	w.addFigures(figures)
	return err
}
