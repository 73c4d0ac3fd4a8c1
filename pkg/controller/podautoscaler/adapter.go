package podautoscaler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"
)

// customWindow is that of samples of the custom metrics API that give none.
const customWindow = time.Minute

// Reader reads live what no cache holds: scales from the API server, and samples from
// the metrics APIs.
type Reader interface {
	// Scale reads the scale of an object.
	Scale(ctx context.Context, of schema.GroupResource, namespace, name string) (*autoscalingv1.Scale, error)
	// PodMetrics reads what the pods that a selector selects use.
	PodMetrics(ctx context.Context, namespace string, of labels.Selector) (*metricsv1beta1.PodMetricsList, error)
	// CustomMetrics reads metrics of pods and other objects of a namespace; without one,
	// of objects that are in none.
	CustomMetrics(namespace string) custom_metrics.MetricsInterface
	// ExternalMetrics reads metrics of anything else.
	ExternalMetrics(namespace string) external_metrics.MetricsInterface
}

// sources are the metrics of the pods of one target, and of what is around them.
type sources struct {
	Reader
	namespace string
	selector  labels.Selector
}

// uses is what the pods of a target use, by container.
type uses = func() ([]metricsv1beta1.PodMetrics, error)

// uses asks once, when it is first wanted: an autoscaler by several resources
// costs the metrics API no more than one by a single resource.
func (s sources) uses(ctx context.Context) uses {
	return sync.OnceValues(func() ([]metricsv1beta1.PodMetrics, error) {
		list, err := s.PodMetrics(ctx, s.namespace, s.selector)
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
func (s sources) read(spec *autoscalingv2.MetricSpec, pods uses) reading {
	switch {
	case spec.Resource != nil && spec.Type == autoscalingv2.ResourceMetricSourceType:
		return usage(spec.Resource.Name, "", pods)
	case spec.ContainerResource != nil && spec.Type == autoscalingv2.ContainerResourceMetricSourceType:
		return usage(spec.ContainerResource.Name, spec.ContainerResource.Container, pods)
	case spec.Pods != nil && spec.Type == autoscalingv2.PodsMetricSourceType:
		return s.ofPods(spec.Pods.Metric)
	case spec.Object != nil && spec.Type == autoscalingv2.ObjectMetricSourceType:
		return s.ofObject(spec.Object)
	case spec.External != nil && spec.Type == autoscalingv2.ExternalMetricSourceType:
		return s.external(spec.External.Metric)
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
			one.value = add(one.value, thousandths(&used))
		}
		if complete {
			r.pods[pod.Name] = one
		}
	}
	return r
}

func (s sources) ofPods(metric autoscalingv2.MetricIdentifier) reading {
	which, err := metav1.LabelSelectorAsSelector(metric.Selector)
	if err != nil {
		return reading{err: err, senseless: true}
	}
	list, err := s.CustomMetrics(s.namespace).GetForObjects(schema.GroupKind{Kind: "Pod"}, s.selector, metric.Name, which)
	switch {
	case err != nil:
		return reading{err: fmt.Errorf("unable to fetch metrics from custom metrics API: %w", err)}
	case len(list.Items) == 0:
		return reading{err: errors.New("no metrics returned from custom metrics API")}
	}
	r := reading{pods: make(samples, len(list.Items))}
	for i := range list.Items {
		value := &list.Items[i]
		one := sample{value: thousandths(&value.Value), at: value.Timestamp.Time, window: customWindow}
		if value.WindowSeconds != nil {
			one.window = time.Duration(*value.WindowSeconds) * time.Second
		}
		r.pods[value.DescribedObject.Name] = one
	}
	return r
}

func (s sources) ofObject(source *autoscalingv2.ObjectMetricSource) reading {
	which, err := metav1.LabelSelectorAsSelector(source.Metric.Selector)
	if err != nil {
		return reading{err: err, senseless: true}
	}
	kind := schema.FromAPIVersionAndKind(source.DescribedObject.APIVersion, source.DescribedObject.Kind).GroupKind()
	namespace, name := s.namespace, source.DescribedObject.Name
	if kind == (schema.GroupKind{Kind: "Namespace"}) {
		namespace, name = "", s.namespace
	}
	value, err := s.CustomMetrics(namespace).GetForObject(kind, name, source.Metric.Name, which)
	if err != nil {
		return reading{err: fmt.Errorf("unable to fetch metrics from custom metrics API: %w", err)}
	}
	return reading{value: thousandths(&value.Value)}
}

func (s sources) external(metric autoscalingv2.MetricIdentifier) reading {
	which, err := metav1.LabelSelectorAsSelector(metric.Selector)
	if err != nil {
		return reading{err: err, senseless: true}
	}
	list, err := s.ExternalMetrics(s.namespace).List(metric.Name, which)
	switch {
	case err != nil:
		return reading{err: fmt.Errorf("unable to fetch metrics from external metrics API: %w", err)}
	case len(list.Items) == 0:
		return reading{err: errors.New("no metrics returned from external metrics API")}
	}
	var r reading
	for i := range list.Items {
		r.value = add(r.value, thousandths(&list.Items[i].Value))
	}
	return r
}
