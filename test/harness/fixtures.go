package harness

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
)

// BuiltBinary is the controller manager under test: KCM_BINARY, or what make
// build has built.
func BuiltBinary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("KCM_BINARY"); path != "" {
		return path
	}
	root, err := ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	path := built(root)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; run make build", err)
	}
	return path
}

// BuiltExample is an example that make build-examples has built.
func BuiltExample(t testing.TB, name string) string {
	t.Helper()
	root, err := ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(filepath.Dir(built(root)), name)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%v; run make build-examples", err)
	}
	return path
}

// Eventually waits for a condition; its last error is what the test fails with.
func Eventually(t testing.TB, within time.Duration, condition func(context.Context) error) {
	t.Helper()
	if err := WaitFor(t.Context(), within, condition); err != nil {
		t.Fatal(err)
	}
}

// Deployment is one of the namespace default whose pods carry the label app=name.
func Deployment(name string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name: "web", Image: "web:1", Command: []string{"serve"},
					Env:   []corev1.EnvVar{{Name: "MODE", Value: "test"}},
					Ports: []corev1.ContainerPort{{ContainerPort: 80}},
				}}},
			},
		},
	}
}

// CreateDeployment creates a Deployment.
func CreateDeployment(t testing.TB, client kubernetes.Interface, name string, replicas int32) {
	t.Helper()
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), Deployment(name, replicas), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// SetImage starts a rollout of Deployment.
func SetImage(t testing.TB, client kubernetes.Interface, name, image string) {
	t.Helper()
	patch := fmt.Sprintf(`{"spec":{"template":{"spec":{"containers":[{"name":"web","image":%q}]}}}}`, image)
	if _, err := client.AppsV1().Deployments("default").Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
}

// RolledOut waits until a Deployment reports that all its pods are updated and available.
func RolledOut(t testing.TB, client kubernetes.Interface, name string, replicas int32, within time.Duration) {
	t.Helper()
	Eventually(t, within, func(ctx context.Context) error {
		d, err := client.AppsV1().Deployments("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if s := d.Status; s.AvailableReplicas != replicas || s.UpdatedReplicas != replicas || s.Replicas != replicas || s.ObservedGeneration != d.Generation {
			return fmt.Errorf("%s: status %+v", name, s)
		}
		return nil
	})
}

// Service selects the pods with the label app=name.
func Service(name string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 80}}},
	}
}
