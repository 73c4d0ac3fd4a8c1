package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
)

func init() {
	register(&scenario{
		name: "ipam", order: 17, quick: 3 * time.Minute, full: 20 * time.Minute, limited: true,
		about: "Nodes register at a steady rate. The time runs from the creation of a node until it has its pod CIDR. No two of them may have the same. No other controller runs.",
		sizes: []size{
			{"nodes", 5000, 200, "nodes of ipam"},
			{"rate", 84, 50, "nodes a second"},
		},
		run: runIPAM,
	})
}

func runIPAM(ctx context.Context, w *world) error {
	w.watch(ctx)
	for i, arg := range w.args {
		if strings.HasPrefix(arg, "--controllers=") {
			w.args[i] = "--controllers=node-ipam-controller"
		}
	}
	if err := w.start(ctx, "--leader-elect=false", "--allocate-node-cidrs", "--cluster-cidr=10.0.0.0/8"); err != nil {
		return err
	}
	if err := pause(ctx, w.settling()); err != nil {
		return err
	}
	// What a process asks for once, with its first node, is part of its start.
	if err := w.registerNode(ctx, "first"); err != nil {
		return err
	}
	return w.registerNodes(ctx, w.sizes["nodes"])
}

// registerNode creates a node and waits until it has a pod CIDR.
func (w *world) registerNode(ctx context.Context, name string) error {
	client := w.load().CoreV1().Nodes()
	if _, err := client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		node, err := client.Get(ctx, name, metav1.GetOptions{})
		return err == nil && node.Spec.PodCIDR != "", err
	})
}

// registerNodes creates nodes at the rate, and waits until each has a pod CIDR of its own.
func (w *world) registerNodes(ctx context.Context, count int) error {
	owners := map[string]string{}
	twice := 0
	served, err := w.expect(ctx, "nodes have their pod CIDR", count, w.watches.Core().V1().Nodes().Informer(), func(object any) string {
		node, ok := object.(*corev1.Node)
		if !ok || node.Spec.PodCIDR == "" || !strings.HasPrefix(node.Name, "new-") {
			return ""
		}
		if owner := owners[node.Spec.PodCIDR]; owner != "" && owner != node.Name {
			twice++
		}
		owners[node.Spec.PodCIDR] = node.Name
		return node.Name
	})
	if err != nil {
		return err
	}
	client := w.load().CoreV1().Nodes()
	err = w.step(ctx, report.Step{Name: "nodes register", Objects: count, Unit: "node"}, func(ctx context.Context) ([]report.Latency, error) {
		err := paced(ctx, count, w.sizes["rate"], func(i int) error {
			name := fmt.Sprintf("new-%d", i)
			served.ask(name)
			_, err := client.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			return err
		})
		took, waited := served.wait(ctx)
		return []report.Latency{report.Latencies("registered to pod CIDR", took)}, errors.Join(err, waited)
	})
	if twice > 0 {
		err = errors.Join(err, fmt.Errorf("%d pod CIDRs are on two nodes", twice))
	}
	return err
}
