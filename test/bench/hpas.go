package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

func init() {
	register(&scenario{
		name: "hpas", order: 12, quick: 6 * time.Minute, full: 30 * time.Minute, limited: true,
		about: "Deployments with an autoscaler each and a metrics API that answers. Metrics as they should be, then metrics that move a little all the time, then the double of what is wanted. The lag is the time between two looks at the same autoscaler, of which the flags say 15 s, and from the doubled load until a Deployment is asked to grow.",
		sizes: []size{
			{"deployments", 500, 20, "Deployments with an autoscaler"},
			{"replicas", 4, 2, "pods of each of them"},
			{"seconds", 90, 45, "how long the looks are measured, each time"},
		},
		flags: []string{"--horizontal-pod-autoscaler-cpu-initialization-period=0s"},
		run:   runHPAs,
	})
}

const (
	// asIs is what each pod uses when it does as it should: half of what it asks for.
	asIs = 100
	// grownBy is how much larger a Deployment is after the load has doubled.
	grownBy = 2
	// podsOfANode is how many fit.
	podsOfANode = 100
)

func runHPAs(ctx context.Context, w *world) error {
	count, replicas := w.sizes["deployments"], w.sizes["replicas"]
	if err := w.begin(ctx, 1+grownBy*count*replicas/podsOfANode); err != nil {
		return err
	}
	metrics, err := harness.StartMetricsAPI(ctx, w.load())
	if err != nil {
		return err
	}
	defer func() { _ = metrics.Stop(context.WithoutCancel(ctx)) }()
	useCPU(metrics, asIs)
	if err := w.deploy(ctx, count, replicas, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: *resource.NewMilliQuantity(2*asIs, resource.DecimalSI)}
	}); err != nil {
		return err
	}
	if err := w.firstLooks(ctx, count, replicas); err != nil {
		return err
	}
	if err := w.looks(ctx, "metrics as they should be", count, func(ctx context.Context, left time.Duration) error { return pause(ctx, left) }); err != nil {
		return err
	}
	if err := w.looks(ctx, "metrics that move", count, func(ctx context.Context, left time.Duration) error {
		const every = 5 * time.Second
		for i := int64(0); left > 0; i, left = i+1, left-every {
			useCPU(metrics, asIs+i%5)
			if err := pause(ctx, min(every, left)); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	return w.growing(ctx, metrics, count, replicas)
}

func useCPU(metrics *harness.MetricsAPI, thousandths int64) {
	metrics.SetUsage(namespace, harness.Metric{Selector: "*", Name: string(corev1.ResourceCPU),
		Value: *resource.NewMilliQuantity(thousandths, resource.DecimalSI), Window: 15 * time.Second})
}

// firstLooks creates the autoscalers and waits until each has seen its metric.
func (w *world) firstLooks(ctx context.Context, count, replicas int) error {
	seen, err := w.expect(ctx, "autoscalers have seen their metric", count, w.watches.Autoscaling().V2().HorizontalPodAutoscalers().Informer(), func(object any) string {
		if hpa, ok := object.(*autoscalingv2.HorizontalPodAutoscaler); ok && len(hpa.Status.CurrentMetrics) > 0 && hpa.Status.CurrentMetrics[0].Resource != nil {
			return hpa.Name
		}
		return ""
	})
	if err != nil {
		return err
	}
	client := w.load().AutoscalingV2().HorizontalPodAutoscalers(namespace)
	return w.step(ctx, report.Step{Name: "first look", Objects: count, Unit: "autoscaler"}, func(ctx context.Context) ([]report.Latency, error) {
		err := parallel(ctx, workers, count, func(i int) error {
			name := fmt.Sprintf("web-%d", i)
			seen.ask(name)
			_, err := client.Create(ctx, autoscalerOf(name, int32(replicas)), metav1.CreateOptions{})
			return err
		})
		took, waited := seen.wait(ctx)
		return []report.Latency{report.Latencies("first look", took)}, errors.Join(err, waited)
	})
}

func autoscalerOf(name string, replicas int32) *autoscalingv2.HorizontalPodAutoscaler {
	return &autoscalingv2.HorizontalPodAutoscaler{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{APIVersion: "apps/v1", Kind: "Deployment", Name: name},
			MinReplicas:    &replicas, MaxReplicas: grownBy * replicas,
			Metrics: []autoscalingv2.MetricSpec{{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{
				Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: ptr.To(int32(50))}}}},
		},
	}
}

// looks measures how far apart the looks at each autoscaler are while do goes on.
func (w *world) looks(ctx context.Context, name string, count int, do func(context.Context, time.Duration) error) error {
	return w.step(ctx, report.Step{Name: name, Objects: count, Unit: "autoscaler", Fixed: true}, func(ctx context.Context) ([]report.Latency, error) {
		mark := w.Audit.Mark()
		err := do(ctx, time.Duration(w.sizes["seconds"])*time.Second)
		return []report.Latency{report.Latencies("between two looks", between(w.Audit.All(mark)))}, err
	})
}

// between is the time between reads of the same scale by the autoscaler's controller.
func between(events iter.Seq[harness.TimedAuditEvent]) []time.Duration {
	last, seen := map[string]time.Time{}, map[string]bool{}
	var gaps []time.Duration
	for event := range events {
		ref := event.ObjectRef
		if ref == nil || ref.Subresource != "scale" || event.Verb != "get" || seen[event.AuditID] {
			continue
		}
		seen[event.AuditID] = true
		if before, ok := last[ref.Name]; ok {
			gaps = append(gaps, event.Received.Sub(before))
		}
		last[ref.Name] = event.Received
	}
	return gaps
}

// growing doubles the load and waits until all Deployments have grown.
func (w *world) growing(ctx context.Context, metrics *harness.MetricsAPI, count, replicas int) error {
	grown, err := w.expectDeployments(ctx, "Deployments have grown", count, func(d *appsv1.Deployment) bool { return *d.Spec.Replicas == int32(grownBy*replicas) })
	if err != nil {
		return err
	}
	return w.step(ctx, report.Step{Name: "twice the load", Objects: count, Unit: "autoscaler"}, func(ctx context.Context) ([]report.Latency, error) {
		for i := range count {
			grown.ask(fmt.Sprintf("web-%d", i))
		}
		useCPU(metrics, grownBy*asIs)
		took, err := grown.wait(ctx)
		return []report.Latency{report.Latencies("until it grows", took)}, err
	})
}
