package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
)

func init() {
	register(&scenario{
		name: "rollout", order: 1, limited: true, quick: 3 * time.Minute, full: 40 * time.Minute,
		about: "Many Deployments are created at once, get a new image all at once, and are scaled to zero; then they are deleted, and what they own goes with them.",
		sizes: []size{
			{"nodes", 100, 20, "nodes of rollout"},
			{"deployments", 50, 10, "Deployments of rollout"},
			{"replicas", 40, 12, "pods of each Deployment of rollout"},
		},
		run: runRollout,
	})
}

func runRollout(ctx context.Context, w *world) error {
	if err := w.begin(ctx, w.sizes["nodes"]); err != nil {
		return err
	}
	replicas := w.sizes["replicas"]
	client := w.load().AppsV1().Deployments(namespace)
	patch := func(ctx context.Context, name, text string) error {
		_, err := client.Patch(ctx, name, types.StrategicMergePatchType, []byte(text), metav1.PatchOptions{})
		return err
	}
	for _, step := range []struct {
		name string
		do   func(ctx context.Context, name string) error
		want func(*appsv1.Deployment) bool
	}{
		{"create", func(ctx context.Context, name string) error {
			_, err := client.Create(ctx, deployment(namespace, name, replicas), metav1.CreateOptions{})
			return err
		}, func(d *appsv1.Deployment) bool { return rolledOut(d, firstImage, replicas) }},
		{"update", func(ctx context.Context, name string) error {
			return patch(ctx, name, fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":%q}]}}}}`, secondImage))
		}, func(d *appsv1.Deployment) bool { return rolledOut(d, secondImage, replicas) }},
		{"scale to 0", func(ctx context.Context, name string) error {
			return patch(ctx, name, `{"spec":{"replicas":0}}`)
		}, func(d *appsv1.Deployment) bool { return rolledOut(d, secondImage, 0) }},
	} {
		if err := w.rolloutStep(ctx, step.name, step.do, step.want); err != nil {
			return err
		}
	}
	if !slices.Contains(w.bench.controllers, "garbage-collector-controller") {
		return nil // what the Deployments own would stay
	}
	return w.deleteStep(ctx)
}

// deleteStep deletes the Deployments and waits until their ReplicaSets have been
// collected: one of each image.
func (w *world) deleteStep(ctx context.Context) error {
	count := w.sizes["deployments"]
	sets, err := w.expectGone(ctx, "ReplicaSets are gone", 2*count, w.watches.Apps().V1().ReplicaSets().Informer(), func(object any) string {
		if rs, ok := object.(*appsv1.ReplicaSet); ok && rs.Namespace == namespace {
			return rs.Name
		}
		return ""
	})
	if err != nil {
		return err
	}
	client := w.load().AppsV1().Deployments(namespace)
	return w.step(ctx, report.Step{Name: "delete", Objects: 2 * count, Unit: "ReplicaSet"}, func(ctx context.Context) ([]report.Latency, error) {
		policy := metav1.DeletePropagationBackground
		deleted := parallel(ctx, workers, count, func(i int) error {
			return client.Delete(ctx, fmt.Sprintf("web-%d", i), metav1.DeleteOptions{PropagationPolicy: &policy})
		})
		took, err := sets.wait(ctx)
		return []report.Latency{report.Latencies("ReplicaSet", took)}, errors.Join(deleted, err)
	})
}

func (w *world) rolloutStep(ctx context.Context, name string, do func(context.Context, string) error, want func(*appsv1.Deployment) bool) error {
	count := w.sizes["deployments"]
	e, err := w.expectDeployments(ctx, "Deployments are as asked", count, want)
	if err != nil {
		return err
	}
	return w.step(ctx, report.Step{Name: name, Objects: count * w.sizes["replicas"], Unit: "pod"}, func(ctx context.Context) ([]report.Latency, error) {
		loaded := parallel(ctx, workers, count, func(i int) error {
			name := fmt.Sprintf("web-%d", i)
			e.ask(name)
			return do(ctx, name)
		})
		took, err := e.wait(ctx)
		return []report.Latency{report.Latencies("Deployment", took)}, errors.Join(loaded, err)
	})
}
