package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
)

func init() {
	register(&scenario{
		name: "namespace", order: 5, quick: 3 * time.Minute, full: 30 * time.Minute,
		about: "One namespace is flooded with small Deployments and ReplicaSets of one pod or none. Meanwhile others, in a namespace of their own, want their Deployment of three pods: the bystanders.",
		sizes: []size{
			{"nodes", 40, 10, "nodes of namespace"},
			{"objects", 3000, 200, "Deployments and ReplicaSets that flood the namespace"},
			{"bystanders", 5, 3, "Deployments elsewhere that are created meanwhile"},
		},
		run: runNamespace,
	})
}

const (
	elsewhere     = "elsewhere"
	bystanderPods = 3
)

func runNamespace(ctx context.Context, w *world) error {
	if err := w.begin(ctx, w.sizes["nodes"]); err != nil {
		return err
	}
	if err := w.newNamespace(ctx, elsewhere); err != nil {
		return err
	}
	objects, bystanders := w.sizes["objects"], w.sizes["bystanders"]
	deployments, err := w.expectDeployments(ctx, "Deployments are available", objects/2, func(d *appsv1.Deployment) bool {
		return rolledOut(d, firstImage, int(*d.Spec.Replicas))
	})
	if err != nil {
		return err
	}
	sets, err := w.expect(ctx, "ReplicaSets are available", objects-objects/2, w.watches.Apps().V1().ReplicaSets().Informer(), func(object any) string {
		rs, ok := object.(*appsv1.ReplicaSet)
		if ok && rs.Namespace == namespace && len(rs.OwnerReferences) == 0 &&
			rs.Status.ObservedGeneration >= rs.Generation && rs.Status.AvailableReplicas == *rs.Spec.Replicas {
			return rs.Name
		}
		return ""
	})
	if err != nil {
		return err
	}
	others, err := w.expect(ctx, "bystanders are available", bystanders, w.watches.Apps().V1().Deployments().Informer(), func(object any) string {
		if d, ok := object.(*appsv1.Deployment); ok && d.Namespace == elsewhere && rolledOut(d, firstImage, bystanderPods) {
			return d.Name
		}
		return ""
	})
	if err != nil {
		return err
	}
	return w.step(ctx, report.Step{Name: "flood", Objects: objects, Unit: "object"}, func(ctx context.Context) ([]report.Latency, error) {
		err := w.flood(ctx, deployments, sets, others)
		var latencies []report.Latency
		for _, e := range []struct {
			of string
			*expectation
		}{{"bystander", others}, {"Deployment", deployments}, {"ReplicaSet", sets}} {
			took, waited := e.wait(ctx)
			latencies, err = append(latencies, report.Latencies(e.of, took)), errors.Join(err, waited)
		}
		return latencies, err
	})
}

// flood creates Deployments and ReplicaSets in turn, and the bystanders at even
// distances among them.
func (w *world) flood(ctx context.Context, deployments, sets, others *expectation) error {
	client, objects, bystanders := w.load().AppsV1(), w.sizes["objects"], w.sizes["bystanders"]
	every := max(1, objects/(bystanders+1))
	return parallel(ctx, workers, objects, func(i int) error {
		if n := i / every; i%every == 0 && n >= 1 && n <= bystanders {
			name := fmt.Sprintf("bystander-%d", n)
			others.ask(name)
			if _, err := client.Deployments(elsewhere).Create(ctx, deployment(elsewhere, name, bystanderPods), metav1.CreateOptions{}); err != nil {
				return err
			}
		}
		name, replicas := fmt.Sprintf("small-%d", i), i/2%2
		if i%2 == 1 {
			deployments.ask(name)
			_, err := client.Deployments(namespace).Create(ctx, deployment(namespace, name, replicas), metav1.CreateOptions{})
			return err
		}
		sets.ask(name)
		_, err := client.ReplicaSets(namespace).Create(ctx, replicaSet(namespace, name, replicas), metav1.CreateOptions{})
		return err
	})
}
