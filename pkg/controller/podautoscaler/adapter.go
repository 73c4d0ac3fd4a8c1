package podautoscaler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"
)

// customWindow is that of samples of the custom metrics API that give none.
const customWindow = time.Minute

// Metrics are the clients of the metrics APIs.
type Metrics struct {
	// Resource is for what pods and containers use.
	Resource resourceclient.PodMetricsesGetter
	// Custom is for metrics of pods and other objects.
	Custom custom_metrics.CustomMetricsClient
	// External is for metrics of anything else.
	External external_metrics.ExternalMetricsClient
}

// uses is what the pods of a target use, by container.
type uses = func() ([]metricsv1beta1.PodMetrics, error)

// uses asks once, when it is first wanted: an autoscaler by several resources
// costs the metrics API no more than one by a single resource.
func (m Metrics) uses(ctx context.Context, namespace string, selector labels.Selector) uses {
	return sync.OnceValues(func() ([]metricsv1beta1.PodMetrics, error) {
		list, err := m.Resource.PodMetricses(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String()})
		switch {
		case err != nil:
			return nil, fmt.Errorf("unable to fetch metrics from resource metrics API: %w", err)
		case len(list.Items) == 0:
			return nil, errors.New("no metrics returned from resource metrics API")
		}
		return list.Items, nil
	})
}

// read reads one metric.
func (m Metrics) read(spec *autoscalingv2.MetricSpec, namespace string, selector labels.Selector, pods uses) reading {
	switch {
	case spec.Resource != nil && spec.Type == autoscalingv2.ResourceMetricSourceType:
		return usage(spec.Resource.Name, "", pods)
	case spec.ContainerResource != nil && spec.Type == autoscalingv2.ContainerResourceMetricSourceType:
		return usage(spec.ContainerResource.Name, spec.ContainerResource.Container, pods)
	case spec.Pods != nil && spec.Type == autoscalingv2.PodsMetricSourceType:
		return m.ofPods(spec.Pods.Metric, namespace, selector)
	case spec.Object != nil && spec.Type == autoscalingv2.ObjectMetricSourceType:
		return m.ofObject(spec.Object, namespace)
	case spec.External != nil && spec.Type == autoscalingv2.ExternalMetricSourceType:
		return m.external(spec.External.Metric, namespace)
	}
	return reading{}
}

// usage is what pods use of a resource, or one container of each.
func usage(of corev1.ResourceName, container string, pods uses) reading {
	items, err := pods()
	if err != nil {
		return reading{err: err}
	}
	r := reading{pods: make(samples, len(items))}
	for i := range items {
		pod := &items[i]
		one, complete := sample{at: pod.Timestamp.Time, window: pod.Window.Duration}, container == "" && len(pod.Containers) > 0
		for j := range pod.Containers {
			c := &pod.Containers[j]
			if container != "" && c.Name != container {
				continue
			}
			used, ok := c.Usage[of]
			if complete = ok; !ok {
				break
			}
			one.value = add(one.value, used.MilliValue())
		}
		if complete {
			r.pods[pod.Name] = one
		}
	}
	return r
}

func (m Metrics) ofPods(metric autoscalingv2.MetricIdentifier, namespace string, selector labels.Selector) reading {
	which, err := metav1.LabelSelectorAsSelector(metric.Selector)
	if err != nil {
		return reading{err: err, senseless: true}
	}
	list, err := m.Custom.NamespacedMetrics(namespace).GetForObjects(schema.GroupKind{Kind: "Pod"}, selector, metric.Name, which)
	switch {
	case err != nil:
		return reading{err: fmt.Errorf("unable to fetch metrics from custom metrics API: %w", err)}
	case len(list.Items) == 0:
		return reading{err: errors.New("no metrics returned from custom metrics API")}
	}
	r := reading{pods: make(samples, len(list.Items))}
	for i := range list.Items {
		value := &list.Items[i]
		one := sample{value: value.Value.MilliValue(), at: value.Timestamp.Time, window: customWindow}
		if value.WindowSeconds != nil {
			one.window = time.Duration(*value.WindowSeconds) * time.Second
		}
		r.pods[value.DescribedObject.Name] = one
	}
	return r
}

func (m Metrics) ofObject(source *autoscalingv2.ObjectMetricSource, namespace string) reading {
	which, err := metav1.LabelSelectorAsSelector(source.Metric.Selector)
	if err != nil {
		return reading{err: err, senseless: true}
	}
	kind := schema.FromAPIVersionAndKind(source.DescribedObject.APIVersion, source.DescribedObject.Kind).GroupKind()
	from, name := m.Custom.NamespacedMetrics(namespace), source.DescribedObject.Name
	if kind == (schema.GroupKind{Kind: "Namespace"}) {
		from, name = m.Custom.RootScopedMetrics(), namespace
	}
	value, err := from.GetForObject(kind, name, source.Metric.Name, which)
	if err != nil {
		return reading{err: fmt.Errorf("unable to fetch metrics from custom metrics API: %w", err)}
	}
	return reading{value: value.Value.MilliValue()}
}

func (m Metrics) external(metric autoscalingv2.MetricIdentifier, namespace string) reading {
	which, err := metav1.LabelSelectorAsSelector(metric.Selector)
	if err != nil {
		return reading{err: err, senseless: true}
	}
	list, err := m.External.NamespacedMetrics(namespace).List(metric.Name, which)
	switch {
	case err != nil:
		return reading{err: fmt.Errorf("unable to fetch metrics from external metrics API: %w", err)}
	case len(list.Items) == 0:
		return reading{err: errors.New("no metrics returned from external metrics API")}
	}
	var r reading
	for i := range list.Items {
		r.value = add(r.value, list.Items[i].Value.MilliValue())
	}
	return r
}
