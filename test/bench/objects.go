package main

import (
	"context"
	"errors"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/workqueue"
)

// workers is how many requests of the load are under way at once.
const workers = 16

// parallel calls do for 0 to count-1.
func parallel(ctx context.Context, workers, count int, do func(i int) error) error {
	errs := make([]error, count)
	workqueue.ParallelizeUntil(ctx, workers, count, func(i int) { errs[i] = do(i) })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, err := range errs {
		if err != nil {
			return fmt.Errorf("put on the load: %w", err)
		}
	}
	return nil
}

func template(name, image string) corev1.PodTemplateSpec {
	return corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": name}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Name: "web", Image: image, Command: []string{"serve", "--listen=:80"},
			Env:   []corev1.EnvVar{{Name: "MODE", Value: "bench"}, {Name: "NAME", Value: name}},
			Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 80}},
		}}},
	}
}

const firstImage, secondImage = "web:1", "web:2"

func deployment(namespace, name string, replicas int) *appsv1.Deployment {
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: appsv1.DeploymentSpec{
			Replicas: new(int32(replicas)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: template(name, firstImage),
		},
	}
}

func replicaSet(namespace, name string, replicas int) *appsv1.ReplicaSet {
	return &appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: appsv1.ReplicaSetSpec{
			Replicas: new(int32(replicas)),
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Template: template(name, firstImage),
		},
	}
}

func service(namespace, name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}

// rolledOut says whether the status reports what the spec asks for.
func rolledOut(d *appsv1.Deployment, image string, replicas int) bool {
	s, n := d.Status, int32(replicas)
	return d.Spec.Template.Spec.Containers[0].Image == image && *d.Spec.Replicas == n &&
		s.ObservedGeneration >= d.Generation && s.Replicas == n && s.UpdatedReplicas == n && s.AvailableReplicas == n
}

func podReady(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp != nil {
		return false
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// expectDeployments waits for Deployments of the load's namespace.
func (w *world) expectDeployments(ctx context.Context, what string, want int, reached func(*appsv1.Deployment) bool) (*expectation, error) {
	return w.expect(ctx, what, want, w.watches.Apps().V1().Deployments().Informer(), func(object any) string {
		if d, ok := object.(*appsv1.Deployment); ok && d.Namespace == namespace && reached(d) {
			return d.Name
		}
		return ""
	})
}

// deploy creates Deployments of equal size and waits until they are available.
func (w *world) deploy(ctx context.Context, count, replicas int, change func(*appsv1.Deployment)) error {
	e, err := w.expectDeployments(ctx, "Deployments are available", count, func(d *appsv1.Deployment) bool { return rolledOut(d, firstImage, replicas) })
	if err != nil {
		return err
	}
	client := w.load()
	err = parallel(ctx, workers, count, func(i int) error {
		d := deployment(namespace, fmt.Sprintf("web-%d", i), replicas)
		if change != nil {
			change(d)
		}
		_, err := client.AppsV1().Deployments(namespace).Create(ctx, d, metav1.CreateOptions{})
		if err == nil {
			_, err = client.CoreV1().Services(namespace).Create(ctx, service(namespace, d.Name), metav1.CreateOptions{})
		}
		return err
	})
	_, waited := e.wait(ctx)
	return errors.Join(err, waited)
}
