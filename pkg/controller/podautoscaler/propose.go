package podautoscaler

import (
	"errors"
	"fmt"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// proposal is what one metric asks for.
type proposal struct {
	replicas int32
	// name is the metric in the words of events and conditions.
	name   string
	status autoscalingv2.MetricStatus
}

// failure is why a metric asks for nothing.
type failure struct {
	// reason and message are those of the event and of the condition.
	reason  string
	message error
	// err is what it comes to among several metrics.
	err error
	// user says that the autoscaler has to be changed.
	user bool
}

var (
	errNoResourceTarget = errors.New("invalid resource metric source: neither an average utilization target nor an average value (usage) target was set")
	errNoObjectTarget   = errors.New("invalid object metric source: neither a value target nor an average value target was set")
	errNoExternalTarget = errors.New("invalid external metric source: neither a value target nor an average value target was set")
)

// proposer proposes for the metrics of one autoscaler.
type proposer struct {
	world
	settings
	tolerances
	now time.Time
}

func (p proposer) propose(spec autoscalingv2.MetricSpec, r reading) (proposal, *failure) {
	switch {
	case spec.Type == autoscalingv2.ResourceMetricSourceType && spec.Resource != nil:
		name := spec.Resource.Name
		return p.resource(usageMetric{name, "", spec.Resource.Target, string(name) + " resource", "FailedGetResourceMetric", string(name) + " resource"}, r,
			func(now autoscalingv2.MetricValueStatus) autoscalingv2.MetricStatus {
				return autoscalingv2.MetricStatus{Type: spec.Type, Resource: &autoscalingv2.ResourceMetricStatus{Name: name, Current: now}}
			})
	case spec.Type == autoscalingv2.ContainerResourceMetricSourceType && spec.ContainerResource != nil:
		name, container := spec.ContainerResource.Name, spec.ContainerResource.Container
		return p.resource(usageMetric{name, container, spec.ContainerResource.Target, string(name) + " container resource", "FailedGetContainerResourceMetric", container + " container"}, r,
			func(now autoscalingv2.MetricValueStatus) autoscalingv2.MetricStatus {
				return autoscalingv2.MetricStatus{Type: spec.Type, ContainerResource: &autoscalingv2.ContainerResourceMetricStatus{Name: name, Container: container, Current: now}}
			})
	case spec.Type == autoscalingv2.PodsMetricSourceType && spec.Pods != nil && spec.Pods.Target.AverageValue != nil:
		return p.ofPods(spec.Pods, r)
	case spec.Type == autoscalingv2.ObjectMetricSourceType && spec.Object != nil:
		return p.object(spec.Object, r)
	case spec.Type == autoscalingv2.ExternalMetricSourceType && spec.External != nil:
		return p.external(spec.External, r)
	}
	err := fmt.Errorf("unknown metric source type %q", spec.Type)
	return proposal{}, &failure{"InvalidMetricSourceType", err, err, true}
}

// usageMetric is a resource of pods or of one of their containers.
type usageMetric struct {
	of        corev1.ResourceName
	container string
	target    autoscalingv2.MetricTarget
	// name is that of its utilization; an average is called by its resource alone.
	name string
	// reason is that of its failures, whose is in their words.
	reason, whose string
}

// quantity writes memory in powers of two.
func (m usageMetric) quantity(value int64) *resource.Quantity {
	q := milli(value)
	if m.of == corev1.ResourceMemory {
		q.Format = resource.BinarySI
	}
	return q
}

func (p proposer) resource(m usageMetric, r reading, status func(autoscalingv2.MetricValueStatus) autoscalingv2.MetricStatus) (proposal, *failure) {
	byAverage := m.target.AverageValue != nil
	fail := func(err error) (proposal, *failure) {
		if !errors.Is(err, errNoResourceTarget) {
			what := "utilization"
			if byAverage {
				what = "usage"
			}
			err = fmt.Errorf("failed to get %s %s: %w", m.of, what, err)
		}
		return proposal{}, &failure{m.reason, err, fmt.Errorf("failed to get %s metric value: %w", m.whose, err), false}
	}
	if !byAverage && m.target.AverageUtilization == nil {
		return fail(errNoResourceTarget)
	}
	if r.err != nil {
		return fail(fmt.Errorf("unable to get metrics for resource %s: %w", m.of, r.err))
	}
	g := sortPods(p.pods, r.pods, m.of, p.timing, p.now)
	if byAverage {
		n, usage, err := byValue(p.current, thousandths(m.target.AverageValue), p.tolerances, p.pods, g)
		if err != nil {
			return fail(err)
		}
		return proposal{n, string(m.of) + " resource", status(autoscalingv2.MetricValueStatus{AverageValue: m.quantity(usage)})}, nil
	}
	n, used, err := byUtilization(p.current, *m.target.AverageUtilization, p.tolerances, p.pods, g,
		func() (map[string]int64, error) { return requests(p.pods, m.of, m.container, p.podLevel) })
	if err != nil {
		return fail(err)
	}
	now := autoscalingv2.MetricValueStatus{AverageUtilization: &used.percent, AverageValue: m.quantity(used.average)}
	return proposal{n, m.name + " utilization (percentage of request)", status(now)}, nil
}

func (p proposer) ofPods(m *autoscalingv2.PodsMetricSource, r reading) (proposal, *failure) {
	fail := func(err error) (proposal, *failure) {
		return proposal{}, &failure{"FailedGetPodsMetric", err, fmt.Errorf("failed to get pods metric value: %w", err), false}
	}
	switch {
	case r.senseless:
		return fail(r.err)
	case r.err != nil:
		return fail(fmt.Errorf("unable to get metric %s: %w", m.Metric.Name, r.err))
	}
	g := sortPods(p.pods, r.pods, "", p.timing, p.now)
	n, usage, err := byValue(p.current, thousandths(m.Target.AverageValue), p.tolerances, p.pods, g)
	if err != nil {
		return fail(err)
	}
	return proposal{n, "pods metric " + m.Metric.Name, autoscalingv2.MetricStatus{
		Type: autoscalingv2.PodsMetricSourceType, Pods: &autoscalingv2.PodsMetricStatus{
			Metric: m.Metric, Current: autoscalingv2.MetricValueStatus{AverageValue: milli(usage)}}}}, nil
}

func (p proposer) object(m *autoscalingv2.ObjectMetricSource, r reading) (proposal, *failure) {
	// A value of another type than the target says is none.
	ofAll := m.Target.Type == autoscalingv2.ValueMetricType && m.Target.Value != nil
	byAverage := m.Target.Type == autoscalingv2.AverageValueMetricType && m.Target.AverageValue != nil
	fail := func(err error) (proposal, *failure) {
		message := err
		if byAverage {
			err = fmt.Errorf("failed to get %s object metric: %w", m.Metric.Name, err)
		}
		return proposal{}, &failure{"FailedGetObjectMetric", message, fmt.Errorf("failed to get object metric value: %w", err), false}
	}
	status := func(now autoscalingv2.MetricValueStatus) autoscalingv2.MetricStatus {
		return autoscalingv2.MetricStatus{Type: autoscalingv2.ObjectMetricSourceType,
			Object: &autoscalingv2.ObjectMetricStatus{Metric: m.Metric, DescribedObject: m.DescribedObject, Current: now}}
	}
	switch {
	case !ofAll && !byAverage:
		return fail(errNoObjectTarget)
	case r.senseless:
		return fail(r.err)
	case r.err != nil:
		return fail(fmt.Errorf("unable to get metric %s: %s on %s %s/%w", m.Metric.Name, m.DescribedObject.Kind, p.hpa.Namespace, m.DescribedObject.Name, r.err))
	case ofAll:
		n, err := byTotal(p.current, r.value, thousandths(m.Target.Value), p.tolerances, p.pods)
		if err != nil {
			return fail(fmt.Errorf("unable to calculate ready pods: %w", err))
		}
		return proposal{n, fmt.Sprintf("%s metric %s", m.DescribedObject.Kind, m.Metric.Name), status(autoscalingv2.MetricValueStatus{Value: milli(r.value)})}, nil
	}
	n, share := byShare(p.reported, r.value, thousandths(m.Target.AverageValue), p.tolerances)
	return proposal{n, withSelector(m.Metric), status(autoscalingv2.MetricValueStatus{AverageValue: milli(share)})}, nil
}

func (p proposer) external(m *autoscalingv2.ExternalMetricSource, r reading) (proposal, *failure) {
	fail := func(err error) (proposal, *failure) {
		message := err
		switch {
		case m.Target.AverageValue != nil:
			err = fmt.Errorf("failed to get %s external metric: %w", m.Metric.Name, err)
		case m.Target.Value != nil:
			err = fmt.Errorf("failed to get external metric %s: %w", m.Metric.Name, err)
		}
		return proposal{}, &failure{"FailedGetExternalMetric", message, fmt.Errorf("failed to get %s external metric value: %w", m.Metric.Name, err), false}
	}
	status := func(now autoscalingv2.MetricValueStatus) autoscalingv2.MetricStatus {
		return autoscalingv2.MetricStatus{Type: autoscalingv2.ExternalMetricSourceType,
			External: &autoscalingv2.ExternalMetricStatus{Metric: m.Metric, Current: now}}
	}
	switch {
	case m.Target.Value == nil && m.Target.AverageValue == nil:
		return fail(errNoExternalTarget)
	case r.senseless:
		return fail(r.err)
	case r.err != nil:
		return fail(fmt.Errorf("unable to get external metric %s/%s/%+v: %w", p.hpa.Namespace, m.Metric.Name, m.Metric.Selector, r.err))
	case m.Target.AverageValue != nil:
		n, share := byShare(p.reported, r.value, thousandths(m.Target.AverageValue), p.tolerances)
		return proposal{n, withSelector(m.Metric), status(autoscalingv2.MetricValueStatus{AverageValue: milli(share)})}, nil
	}
	n, err := byTotal(p.current, r.value, thousandths(m.Target.Value), p.tolerances, p.pods)
	if err != nil {
		return fail(fmt.Errorf("unable to calculate ready pods: %w", err))
	}
	return proposal{n, withSelector(m.Metric), status(autoscalingv2.MetricValueStatus{Value: milli(r.value)})}, nil
}

func withSelector(m autoscalingv2.MetricIdentifier) string {
	return fmt.Sprintf("external metric %s(%+v)", m.Name, m.Selector)
}

func milli(value int64) *resource.Quantity {
	return resource.NewMilliQuantity(value, resource.DecimalSI)
}
