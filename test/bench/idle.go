package main

import (
	"context"
	"time"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
)

func init() {
	register(&scenario{
		name: "idle", order: 4, quick: 3 * time.Minute, full: 30 * time.Minute,
		about: "Nodes and pods, all as asked for, and nobody changes anything: only the nodes' heartbeats arrive. What a cluster costs that has nothing to do.",
		sizes: []size{
			{"nodes", 500, 50, "nodes of idle"},
			{"deployments", 100, 10, "Deployments of idle, each behind a Service"},
			{"replicas", 50, 50, "pods of each Deployment of idle"},
			{"seconds", 60, 20, "how long idle is measured"},
		},
		run: func(ctx context.Context, w *world) error {
			if err := w.begin(ctx, w.sizes["nodes"]); err != nil {
				return err
			}
			if err := w.deploy(ctx, w.sizes["deployments"], w.sizes["replicas"], nil); err != nil {
				return err
			}
			if err := pause(ctx, w.settling()); err != nil {
				return err
			}
			pods := w.sizes["deployments"] * w.sizes["replicas"]
			return w.step(ctx, report.Step{Name: "idle", Objects: pods, Unit: "pod", Fixed: true}, func(ctx context.Context) ([]report.Latency, error) {
				return nil, pause(ctx, time.Duration(w.sizes["seconds"])*time.Second)
			})
		},
	})
}
