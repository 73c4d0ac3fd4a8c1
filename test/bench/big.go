package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
)

func init() {
	register(&scenario{
		name: "big", order: 2, quick: 3 * time.Minute, full: 30 * time.Minute,
		about: "One Deployment behind one Service is created, then a part of its pods is deleted at once and replaced. The cluster is as asked for when every pod is a ready endpoint.",
		sizes: []size{
			{"nodes", 100, 20, "nodes of big"},
			{"pods", 5000, 300, "pods of the one Deployment of big"},
			{"percent", 20, 20, "part of the pods of big that is replaced"},
		},
		run: runBig,
	})
}

func runBig(ctx context.Context, w *world) error {
	if err := w.begin(ctx, w.sizes["nodes"]); err != nil {
		return err
	}
	pods := w.sizes["pods"]
	serving, err := w.expectEndpoints(ctx, "web-0", pods, nil)
	if err != nil {
		return err
	}
	ready, err := w.expectReadyPods(ctx, pods, nil)
	if err != nil {
		return err
	}
	if err := w.step(ctx, report.Step{Name: "create", Objects: pods, Unit: "pod"}, func(ctx context.Context) ([]report.Latency, error) {
		if err := w.deploy(ctx, 1, pods, nil); err != nil {
			return nil, err
		}
		_, err := serving.wait(ctx)
		took, readied := ready.wait(ctx)
		return []report.Latency{report.Latencies("pod Ready", took)}, errors.Join(err, readied)
	}); err != nil {
		return err
	}
	return w.replace(ctx, pods*w.sizes["percent"]/100)
}

// replace deletes pods and waits for as many new ones, and for their endpoints.
func (w *world) replace(ctx context.Context, count int) error {
	old, err := w.watches.Core().V1().Pods().Lister().Pods(namespace).List(labels.Everything())
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	known, gone := map[string]bool{}, map[string]bool{}
	for i, pod := range old {
		known[pod.Name] = true
		if i < count {
			gone[pod.Name] = true
		}
	}
	serving, err := w.expectEndpoints(ctx, "web-0", w.sizes["pods"], gone)
	if err != nil {
		return err
	}
	ready, err := w.expectReadyPods(ctx, count, known)
	if err != nil {
		return err
	}
	available, err := w.expectDeployments(ctx, "Deployment is available", 1, func(d *appsv1.Deployment) bool {
		return rolledOut(d, firstImage, w.sizes["pods"])
	})
	if err != nil {
		return err
	}
	return w.step(ctx, report.Step{Name: "replace", Objects: count, Unit: "pod"}, func(ctx context.Context) ([]report.Latency, error) {
		client, deleted := w.load(), make([]time.Duration, count)
		err := parallel(ctx, workers, count, func(i int) error {
			deleted[i] = time.Since(ready.since)
			return client.CoreV1().Pods(namespace).Delete(ctx, old[i].Name, metav1.DeleteOptions{})
		})
		took, readied := ready.wait(ctx)
		_, served := serving.wait(ctx)
		_, rolled := available.wait(ctx)
		return []report.Latency{report.Latencies("pod replaced", report.InOrder(deleted, took))}, errors.Join(err, readied, served, rolled)
	})
}

// expectReadyPods waits for pods of the load's namespace that are not known yet.
func (w *world) expectReadyPods(ctx context.Context, want int, known map[string]bool) (*expectation, error) {
	return w.expect(ctx, "pods are Ready", want, w.watches.Core().V1().Pods().Informer(), func(object any) string {
		if pod, ok := object.(*corev1.Pod); ok && pod.Namespace == namespace && !known[pod.Name] && podReady(pod) {
			return pod.Name
		}
		return ""
	})
}

// expectEndpoints waits until the slices of a Service have so many ready
// endpoints, and none of a pod that has gone.
func (w *world) expectEndpoints(ctx context.Context, service string, want int, gone map[string]bool) (*expectation, error) {
	var mu sync.Mutex
	ready, stale := map[string]int{}, map[string]int{}
	return w.expect(ctx, "Service has all its endpoints", 1, w.watches.Discovery().V1().EndpointSlices().Informer(), func(object any) string {
		slice, ok := object.(*discoveryv1.EndpointSlice)
		if !ok || slice.Labels[discoveryv1.LabelServiceName] != service {
			return ""
		}
		mu.Lock()
		defer mu.Unlock()
		ready[slice.Name], stale[slice.Name] = 0, 0
		for _, e := range slice.Endpoints {
			if e.TargetRef != nil && gone[e.TargetRef.Name] {
				stale[slice.Name]++
			}
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				ready[slice.Name]++
			}
		}
		if total(ready) == want && total(stale) == 0 {
			return service
		}
		return ""
	})
}

func total(counts map[string]int) int {
	all := 0
	for _, n := range counts {
		all += n
	}
	return all
}
