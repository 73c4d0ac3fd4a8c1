package e2e

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// autoscalerUser is the last part of the name under which autoscalers are looked at.
const autoscalerUser = "horizontal-pod-autoscaler"

// furnishAutoscalers makes an autoscaler whose target is as large as it should
// be, one that is held by the stabilization of scaling down, one whose pods have
// no metrics, and one whose metrics API is not served.
func (c *cluster) furnishAutoscalers(t *testing.T) {
	metrics, err := harness.StartMetricsAPI(t.Context(), c.client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := metrics.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	c.unserve(t, "v1beta1.external.metrics.k8s.io")
	for app, cpu := range map[string]string{"rolled": "100m", "recreate": "10m"} {
		metrics.SetUsage("default", harness.Metric{Selector: "app=" + app, Name: "cpu", Value: resource.MustParse(cpu), Window: time.Second})
	}
	share := resource.MustParse("100m")
	cpu := autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
		Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &share}}}
	queue := autoscalingv2.MetricSpec{Type: autoscalingv2.ExternalMetricSourceType, External: &autoscalingv2.ExternalMetricSource{
		Metric: autoscalingv2.MetricIdentifier{Name: "queue"}, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.AverageValueMetricType, AverageValue: &share}}}
	stories := []struct {
		target, reasons string
		metric          autoscalingv2.MetricSpec
	}{
		{"rolled", "ReadyForNewScale, ValidMetricFound", cpu},
		{"recreate", "ScaleDownStabilized, ValidMetricFound", cpu},
		{"plain", "SucceededGetScale, FailedGetResourceMetric", cpu},
		{"bare", "SucceededGetScale, FailedGetExternalMetric", queue},
	}
	for _, story := range stories {
		must(t)(c.client.AutoscalingV2().HorizontalPodAutoscalers("default").Create(t.Context(), &autoscalingv2.HorizontalPodAutoscaler{
			ObjectMeta: metav1.ObjectMeta{Name: story.target},
			Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
				ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: story.target},
				MaxReplicas:    9, Metrics: []autoscalingv2.MetricSpec{story.metric},
				// Longer than the test: nothing is ever scaled down.
				Behavior: &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: &autoscalingv2.HPAScalingRules{StabilizationWindowSeconds: new(int32(3600))}},
			},
		}, metav1.CreateOptions{}))
	}
	for _, story := range stories {
		c.autoscalerIs(t, story.target, story.reasons)
	}
}

// autoscalerIs waits until the reasons of whether it can scale, and whether it
// does, are these.
func (c *cluster) autoscalerIs(t *testing.T, name, reasons string) {
	t.Helper()
	harness.Eventually(t, 2*time.Minute, func(ctx context.Context) error {
		hpa, err := c.client.AutoscalingV2().HorizontalPodAutoscalers("default").Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		of := map[autoscalingv2.HorizontalPodAutoscalerConditionType]string{}
		for _, condition := range hpa.Status.Conditions {
			of[condition.Type] = condition.Reason
		}
		if got := of[autoscalingv2.AbleToScale] + ", " + of[autoscalingv2.ScalingActive]; got != reasons {
			return fmt.Errorf("autoscaler %s: %s, wanted %s", name, got, reasons)
		}
		return nil
	})
}

// unserve takes an API out of the cluster, and waits until it is gone.
func (c *cluster) unserve(t *testing.T, name string) {
	t.Helper()
	rest := c.client.Discovery().RESTClient()
	if err := rest.Delete().AbsPath("/apis/apiregistration.k8s.io/v1/apiservices/" + name).Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, time.Minute, func(ctx context.Context) error {
		err := rest.Get().AbsPath("/apis/external.metrics.k8s.io/v1beta1").Do(ctx).Error()
		if apierrors.IsNotFound(err) {
			return nil
		}
		return fmt.Errorf("%s is still served: %w", name, err)
	})
}

// autoscaledSince fails until the autoscalers have been looked at: those without
// metrics have an event with every look.
func (c *cluster) autoscaledSince(mark int64) error {
	for _, event := range c.eventsSince(mark) {
		if event.ObjectRef != nil && event.ObjectRef.Resource == "events" && event.Controller() == autoscalerUser {
			return nil
		}
	}
	return errors.New("no autoscaler has been looked at")
}
