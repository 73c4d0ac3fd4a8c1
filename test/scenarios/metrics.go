package scenarios

import (
	"context"
	"fmt"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// measuring is what a metrics line says: which metrics, whose, and their values.
type measuring struct {
	kind    string
	metrics []harness.Metric
}

// parseMetrics reads
//
//	usage SELECTOR RESOURCE=QUANTITY... [container=NAME] [window=DURATION]
//	pods SELECTOR METRIC=QUANTITY...
//	object RES/NAME METRIC=QUANTITY...
//	external METRIC=QUANTITY... [LABEL:VALUE,...]
//	off, on, forget
func parseMetrics(line string) (measuring, error) {
	fields := words(line)
	if len(fields) == 0 {
		return measuring{}, fmt.Errorf("metrics takes usage, pods, object, external, off, on or forget")
	}
	m := measuring{kind: fields[0]}
	of, rest := harness.Metric{}, fields[1:]
	switch m.kind {
	case "off", "on", "forget":
		if len(rest) > 0 {
			return m, fmt.Errorf("metrics %s takes nothing", m.kind)
		}
		return m, nil
	case "usage", "pods", "object":
		if len(rest) < 2 {
			return m, fmt.Errorf("metrics %s takes whose it is and NAME=QUANTITY, not %q", m.kind, line)
		}
		if of.Selector = rest[0]; m.kind == "object" {
			of.Selector, of.Object = "", rest[0]
			if err := wantReference(of.Object); err != nil {
				return m, err
			}
		} else if _, err := labels.Parse(of.Selector); err != nil && of.Selector != "*" {
			return m, fmt.Errorf("metrics %s: %w", m.kind, err)
		}
		rest = rest[1:]
	case "external":
	default:
		return m, fmt.Errorf("there are no metrics %q", m.kind)
	}
	return m, m.read(of, rest)
}

// read reads the values and what is said about all of them.
func (m *measuring) read(of harness.Metric, fields []string) error {
	values := map[string]resource.Quantity{}
	var names []string
	for _, field := range fields {
		name, value, ok := strings.Cut(field, "=")
		var err error
		switch {
		case !ok && m.kind == "external" && strings.Contains(field, ":"):
			of.Selector = strings.ReplaceAll(field, ":", "=")
		case !ok:
			return fmt.Errorf("metrics %s: %q is not NAME=QUANTITY", m.kind, field)
		case name == "container" && m.kind == "usage":
			of.Container = value
		case name == "window" && m.kind == "usage":
			of.Window, err = time.ParseDuration(value)
		default:
			values[name], err = resource.ParseQuantity(value)
			names = append(names, name)
		}
		if err != nil {
			return fmt.Errorf("metrics %s: %s: %w", m.kind, field, err)
		}
	}
	for _, name := range names {
		one := of
		one.Name, one.Value = name, values[name]
		m.metrics = append(m.metrics, one)
	}
	if len(m.metrics) == 0 {
		return fmt.Errorf("metrics %s takes NAME=QUANTITY", m.kind)
	}
	return nil
}

func wantMetrics(s Step) error {
	_, err := parseMetrics(s.Rest)
	return err
}

// measure tells the metrics APIs what to tell. They are there from the first such
// line of a story to its end.
func (r *run) measure(ctx context.Context, step Step) error {
	m, err := parseMetrics(step.Rest)
	if err != nil {
		return err
	}
	if r.suite.metrics == nil {
		if r.suite.metrics, err = harness.StartMetricsAPI(ctx, r.suite.typed); err != nil {
			return err
		}
	}
	api := r.suite.metrics
	switch m.kind {
	case "off", "on":
		api.Fail(r.namespace, m.kind == "off")
	case "forget":
		api.Forget(r.namespace)
	}
	for _, metric := range m.metrics {
		switch m.kind {
		case "usage":
			api.SetUsage(r.namespace, metric)
		case "external":
			api.SetExternal(r.namespace, metric)
		default:
			api.SetCustom(r.namespace, metric)
		}
	}
	return nil
}

// endMetrics takes the metrics APIs away, so that the next story has none.
func (s *suite) endMetrics(ctx context.Context) error {
	if s.metrics == nil {
		return nil
	}
	err := s.metrics.Stop(ctx)
	s.metrics = nil
	return err
}
