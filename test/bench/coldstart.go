package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
)

func init() {
	register(&scenario{
		name: "coldstart", order: 6, quick: 3 * time.Minute, full: 20 * time.Minute,
		about: "The process starts on a cluster full of objects that need nothing, and one Deployment that waits. Times run from the start of the process to the first sign of that Deployment in its status, and until its pod is available. The second start finds nothing of the first left to do.",
		sizes: []size{
			{"nodes", 10, 5, "nodes of coldstart"},
			{"objects", 10000, 1000, "objects that exist: pods, ReplicaSets, ConfigMaps, Secrets, Services"},
		},
		run: runColdstart,
	})
}

func runColdstart(ctx context.Context, w *world) error {
	w.watch(ctx)
	if err := w.AddNodes(ctx, w.sizes["nodes"]); err != nil {
		return err
	}
	if err := w.bareNamespace(ctx, namespace); err != nil {
		return err
	}
	if err := w.fill(ctx, w.sizes["objects"]); err != nil {
		return err
	}
	for i, step := range []string{"start", "start again"} {
		if i > 0 {
			w.measured().Kill()
			w.measure(nil)
		}
		if err := w.startCold(ctx, step, fmt.Sprintf("waiting-%d", i)); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) startCold(ctx context.Context, step, name string) error {
	if _, err := w.Client.AppsV1().Deployments(namespace).Create(ctx, deployment(namespace, name, 1), metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the waiting Deployment: %w", err)
	}
	seen, err := w.expectDeployments(ctx, "Deployment is seen", 1, func(d *appsv1.Deployment) bool {
		return d.Name == name && d.Status.ObservedGeneration >= 1
	})
	if err != nil {
		return err
	}
	available, err := w.expectDeployments(ctx, "Deployment is available", 1, func(d *appsv1.Deployment) bool {
		return d.Name == name && rolledOut(d, firstImage, 1)
	})
	if err != nil {
		return err
	}
	return w.step(ctx, report.Step{Name: step, Objects: w.sizes["objects"], Unit: "object"}, func(ctx context.Context) ([]report.Latency, error) {
		seen.ask(name)
		available.ask(name)
		err := w.start(ctx, "--leader-elect=false")
		first, seeing := seen.wait(ctx)
		took, waited := available.wait(ctx)
		return []report.Latency{report.Latencies("first reconcile", first), report.Latencies("Deployment", took)}, errors.Join(err, seeing, waited)
	})
}

// fill creates objects of five kinds, as they are when nothing is left to do.
func (w *world) fill(ctx context.Context, objects int) error {
	client := w.load()
	kinds := []func(context.Context, kubernetes.Interface, string) error{fillPod, fillReplicaSet, fillConfigMap, fillSecret, fillPod, fillReplicaSet, fillConfigMap, fillSecret, fillPod, fillService}
	w.say("creating %d objects", objects)
	return parallel(ctx, 2*workers, objects, func(i int) error {
		return kinds[i%len(kinds)](ctx, client, fmt.Sprintf("object-%d", i))
	})
}

// fillPod makes a pod that another scheduler has still to place: it waits.
func fillPod(ctx context.Context, client kubernetes.Interface, name string) error {
	spec := template(name, firstImage)
	spec.Spec.SchedulerName = "another"
	_, err := client.CoreV1().Pods(namespace).Create(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: spec.Labels}, Spec: spec.Spec}, metav1.CreateOptions{})
	return err
}

func fillReplicaSet(ctx context.Context, client kubernetes.Interface, name string) error {
	rs, err := client.AppsV1().ReplicaSets(namespace).Create(ctx, replicaSet(namespace, name, 0), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	rs.Status.ObservedGeneration = rs.Generation
	_, err = client.AppsV1().ReplicaSets(namespace).UpdateStatus(ctx, rs, metav1.UpdateOptions{})
	return err
}

func fillConfigMap(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().ConfigMaps(namespace).Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"settings": strings.Repeat("setting ", 128)}}, metav1.CreateOptions{})
	return err
}

func fillSecret(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().Secrets(namespace).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{"word": strings.Repeat("secret ", 128)}}, metav1.CreateOptions{})
	return err
}

// fillService has no selector: its endpoints are somebody else's.
func fillService(ctx context.Context, client kubernetes.Interface, name string) error {
	s := service(namespace, name)
	s.Spec.Selector, s.Spec.ClusterIP = nil, corev1.ClusterIPNone
	_, err := client.CoreV1().Services(namespace).Create(ctx, s, metav1.CreateOptions{})
	return err
}
