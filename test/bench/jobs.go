package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
)

func init() {
	register(&scenario{
		name: "jobs", order: 12, quick: 4 * time.Minute, full: 30 * time.Minute,
		about: "Jobs of one to four pods are created at once, half of them Indexed, and run to completion; then they are deleted, and their pods go with them.",
		sizes: []size{
			{"nodes", 50, 10, "nodes of jobs"},
			{"jobs", 1000, 40, "Jobs of one to four pods"},
		},
		run: runJobs,
	})
}

func runJobs(ctx context.Context, w *world) error {
	if !slices.Contains(w.bench.controllers, "job-controller") {
		return errors.New("the scenario jobs needs job-controller")
	}
	if err := w.begin(ctx, w.sizes["nodes"]); err != nil {
		return err
	}
	count := w.sizes["jobs"]
	client := w.load().BatchV1().Jobs(namespace)
	e, err := w.expect(ctx, "Jobs are complete", count, w.watches.Batch().V1().Jobs().Informer(), func(object any) string {
		if j, ok := object.(*batchv1.Job); ok && j.Namespace == namespace && jobComplete(j) {
			return j.Name
		}
		return ""
	})
	if err != nil {
		return err
	}
	if err := w.step(ctx, report.Step{Name: "run", Objects: podsOfJobs(count), Unit: "pod"}, func(ctx context.Context) ([]report.Latency, error) {
		loaded := parallel(ctx, workers, count, func(i int) error {
			j := job(i)
			e.ask(j.Name)
			_, err := client.Create(ctx, j, metav1.CreateOptions{})
			return err
		})
		took, err := e.wait(ctx)
		return []report.Latency{report.Latencies("Job", took)}, errors.Join(loaded, err)
	}); err != nil {
		return err
	}
	if err := w.checkJobs(ctx, count); err != nil {
		return err
	}
	if !slices.Contains(w.bench.controllers, "garbage-collector-controller") {
		return nil // the pods would stay
	}
	return w.deleteJobs(ctx, count)
}

// job is the Job number i: of one to four pods.
func job(i int) *batchv1.Job {
	pods, mode := int32(i%4+1), batchv1.NonIndexedCompletion
	if i%2 == 0 {
		mode = batchv1.IndexedCompletion
	}
	name := fmt.Sprintf("job-%d", i)
	pod := template(name, firstImage)
	pod.Labels = nil
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       batchv1.JobSpec{Completions: &pods, Parallelism: &pods, CompletionMode: &mode, Template: pod},
	}
}

func podsOfJobs(count int) (pods int) {
	for i := range count {
		pods += i%4 + 1
	}
	return pods
}

func jobComplete(j *batchv1.Job) bool {
	return slices.ContainsFunc(j.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == batchv1.JobComplete && c.Status == corev1.ConditionTrue
	})
}

// checkJobs fails when a pod was not counted exactly once.
func (w *world) checkJobs(ctx context.Context, count int) error {
	jobs, err := w.load().BatchV1().Jobs(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("check the Jobs: %w", err)
	}
	for i := range jobs.Items {
		if j := &jobs.Items[i]; j.Status.Succeeded != *j.Spec.Completions || j.Status.Failed != 0 {
			return fmt.Errorf("%s: %d of %d succeeded, %d failed", j.Name, j.Status.Succeeded, *j.Spec.Completions, j.Status.Failed)
		}
	}
	pods, err := w.load().CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("check the pods: %w", err)
	}
	if len(pods.Items) != podsOfJobs(count) {
		return fmt.Errorf("%d pods in place of %d", len(pods.Items), podsOfJobs(count))
	}
	for i := range pods.Items {
		if p := &pods.Items[i]; len(p.Finalizers) > 0 {
			return fmt.Errorf("%s still has its finalizer", p.Name)
		}
	}
	return nil
}

func (w *world) deleteJobs(ctx context.Context, count int) error {
	gone, err := w.expectGone(ctx, "pods are gone", podsOfJobs(count), w.watches.Core().V1().Pods().Informer(), func(object any) string {
		if p, ok := object.(*corev1.Pod); ok && p.Namespace == namespace {
			return p.Name
		}
		return ""
	})
	if err != nil {
		return err
	}
	client := w.load().BatchV1().Jobs(namespace)
	return w.step(ctx, report.Step{Name: "delete", Objects: podsOfJobs(count), Unit: "pod"}, func(ctx context.Context) ([]report.Latency, error) {
		policy := metav1.DeletePropagationBackground
		deleted := parallel(ctx, workers, count, func(i int) error {
			return client.Delete(ctx, fmt.Sprintf("job-%d", i), metav1.DeleteOptions{PropagationPolicy: &policy})
		})
		took, err := gone.wait(ctx)
		return []report.Latency{report.Latencies("pod", took)}, errors.Join(deleted, err)
	})
}
