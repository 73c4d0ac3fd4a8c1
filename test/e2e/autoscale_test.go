package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// TestAutoscale is the story of a Deployment that grows under load and shrinks
// after it: real pods on simulated nodes, a metrics API behind the API server, and
// the default flags but for shorter times.
func TestAutoscale(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.manager(t, harness.BuiltBinary(t), "--leader-elect=false", "--horizontal-pod-autoscaler-sync-period=2s",
		"--horizontal-pod-autoscaler-cpu-initialization-period=0s", "--horizontal-pod-autoscaler-downscale-stabilization=10s")
	c.nodes(t, 3)
	metrics, err := harness.StartMetricsAPI(t.Context(), c.client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := metrics.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	use := func(cpu string) {
		metrics.SetUsage("default", harness.Metric{Selector: "app=shop", Name: "cpu", Value: resource.MustParse(cpu), Window: 15 * time.Second})
	}
	use("100m")
	shop := harness.Deployment("shop", 2)
	shop.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m")}
	if _, err := c.client.AppsV1().Deployments("default").Create(t.Context(), shop, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	hpas := c.client.AutoscalingV2().HorizontalPodAutoscalers("default")
	if _, err := hpas.Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: "shop"},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: "shop"},
			MinReplicas:    ptr.To(int32(2)), MaxReplicas: 6,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To(int32(50))}}}},
		},
	}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	settled := func(replicas int32) {
		t.Helper()
		harness.RolledOut(t, c.client, "shop", replicas, 3*time.Minute)
		harness.Eventually(t, time.Minute, func(ctx context.Context) error {
			hpa, err := hpas.Get(ctx, "shop", metav1.GetOptions{})
			if err != nil {
				return err
			}
			if hpa.Status.CurrentReplicas != replicas || hpa.Status.DesiredReplicas != replicas {
				return fmt.Errorf("status %+v", hpa.Status)
			}
			return nil
		})
	}
	settled(2)
	use("190m")
	settled(6)
	use("20m")
	settled(2)
}
