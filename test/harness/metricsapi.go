package harness

import (
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/cert"
	custom "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	external "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

// NoContainer in place of the name of a container says that there is none.
const NoContainer = "-"

// Metric is one number that a MetricsAPI tells.
type Metric struct {
	// Selector selects the pods that use it, or that have it; for an external
	// metric it is what it is labelled with.
	Selector string
	// Object is what has it instead, such as services/front.
	Object string
	// Name is the metric, or the resource that pods use.
	Name string
	// Container is the one that uses it; empty means each. With NoContainer nothing uses it,
	// and the pods are listed without a container.
	Container string
	// Value is what is told.
	Value resource.Quantity
	// Window is how long it was measured.
	Window time.Duration
}

func (m Metric) same(other Metric) bool {
	return m.Selector == other.Selector && m.Object == other.Object && m.Name == other.Name && m.Container == other.Container
}

// MetricsAPI is an API server of metrics.k8s.io, custom.metrics.k8s.io and
// external.metrics.k8s.io behind that of a cluster. It tells what it was told.
type MetricsAPI struct {
	client kubernetes.Interface
	server *http.Server
	port   int

	mu     sync.Mutex
	spaces map[string]*metricSpace
}

// metricSpace is what is told in one namespace.
type metricSpace struct {
	usage, custom, external []Metric
	off                     bool
}

// StartMetricsAPI starts the server and announces it to the cluster of client.
func StartMetricsAPI(ctx context.Context, client kubernetes.Interface) (*MetricsAPI, error) {
	certificate, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make the certificate of the metrics API: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("read the certificate of the metrics API: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listen for the metrics API: %w", err)
	}
	m := &MetricsAPI{client: client, spaces: map[string]*metricSpace{}, port: listener.Addr().(*net.TCPAddr).Port}
	m.server = &http.Server{Handler: m, ReadHeaderTimeout: 10 * time.Second, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}}}
	go func() { _ = m.server.ServeTLS(listener, "", "") }()
	if err := m.announce(ctx); err != nil {
		_ = m.server.Close()
		return nil, err
	}
	return m, nil
}

// SetUsage tells what pods use of a resource.
func (m *MetricsAPI) SetUsage(namespace string, metric Metric) {
	m.change(namespace, func(s *metricSpace) { s.usage = replace(s.usage, metric) })
}

// SetCustom tells a metric of pods or of an object.
func (m *MetricsAPI) SetCustom(namespace string, metric Metric) {
	m.change(namespace, func(s *metricSpace) { s.custom = replace(s.custom, metric) })
}

// SetExternal tells a metric of nothing in the cluster.
func (m *MetricsAPI) SetExternal(namespace string, metric Metric) {
	m.change(namespace, func(s *metricSpace) { s.external = replace(s.external, metric) })
}

// Forget forgets what is told in a namespace.
func (m *MetricsAPI) Forget(namespace string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.spaces, namespace)
}

// Fail answers about a namespace with errors, or no longer.
func (m *MetricsAPI) Fail(namespace string, fail bool) {
	m.change(namespace, func(s *metricSpace) { s.off = fail })
}

func (m *MetricsAPI) change(namespace string, how func(*metricSpace)) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.spaces[namespace] == nil {
		m.spaces[namespace] = &metricSpace{}
	}
	how(m.spaces[namespace])
}

// replace puts a metric last, so that it wins over what was told before.
func replace(all []Metric, metric Metric) []Metric {
	return append(slices.DeleteFunc(slices.Clone(all), metric.same), metric)
}

func (m *MetricsAPI) space(namespace string) metricSpace {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.spaces[namespace]; s != nil {
		return *s
	}
	return metricSpace{}
}

// ServeHTTP answers discovery, and reads of metrics in a namespace.
func (m *MetricsAPI) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	parts := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	if len(parts) < 3 || parts[0] != "apis" {
		http.NotFound(w, request)
		return
	}
	group, rest := parts[1], parts[3:]
	if len(rest) == 0 {
		answer(w, http.StatusOK, discoveryOf(group, parts[2]))
		return
	}
	if len(rest) < 3 || rest[0] != "namespaces" {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "there are metrics of namespaces only")
		return
	}
	namespace, rest := rest[1], rest[2:]
	space := m.space(namespace)
	if space.off {
		refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, "the metrics are off")
		return
	}
	selector, err := labels.Parse(request.URL.Query().Get("labelSelector"))
	if err != nil {
		refuse(w, http.StatusBadRequest, metav1.StatusReasonBadRequest, err.Error())
		return
	}
	var list any
	switch {
	case group == metricsv1beta1.GroupName:
		list, err = m.podMetrics(request.Context(), namespace, space, selector)
	case group == custom.SchemeGroupVersion.Group:
		list, err = m.customMetrics(request.Context(), namespace, space, selector, rest)
	default:
		list, err = externalMetrics(space, selector, rest[0])
	}
	if err != nil {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, err.Error())
		return
	}
	answer(w, http.StatusOK, list)
}

func (m *MetricsAPI) podMetrics(ctx context.Context, namespace string, space metricSpace, selector labels.Selector) (any, error) {
	pods, err := m.running(ctx, namespace, selector)
	list := metricsv1beta1.PodMetricsList{TypeMeta: metav1.TypeMeta{APIVersion: metricsv1beta1.SchemeGroupVersion.String(), Kind: "PodMetricsList"}}
	for _, pod := range pods {
		listed := false
		of := metricsv1beta1.PodMetrics{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: pod.Name, Labels: pod.Labels}, Timestamp: metav1.Now()}
		for _, c := range pod.Spec.Containers {
			used := corev1.ResourceList{}
			for _, metric := range space.usage {
				switch {
				case !selects(metric.Selector, pod.Labels):
				case metric.Container == NoContainer:
					listed = true
				case metric.Container == "" || metric.Container == c.Name:
					used[corev1.ResourceName(metric.Name)], of.Window.Duration = metric.Value, metric.Window
				}
			}
			if len(used) > 0 {
				of.Containers = append(of.Containers, metricsv1beta1.ContainerMetrics{Name: c.Name, Usage: used})
			}
		}
		if listed || len(of.Containers) > 0 {
			list.Items = append(list.Items, of)
		}
	}
	return list, err
}

func (m *MetricsAPI) customMetrics(ctx context.Context, namespace string, space metricSpace, selector labels.Selector, rest []string) (any, error) {
	list := custom.MetricValueList{TypeMeta: metav1.TypeMeta{APIVersion: custom.SchemeGroupVersion.String(), Kind: "MetricValueList"}, Items: []custom.MetricValue{}}
	object, name := "namespaces/"+namespace, rest[len(rest)-1]
	if len(rest) == 3 {
		object = rest[0] + "/" + rest[1]
	}
	tell := func(metric Metric, kind, of string) {
		list.Items = append(list.Items, custom.MetricValue{
			DescribedObject: corev1.ObjectReference{Kind: kind, Namespace: namespace, Name: of},
			Metric:          custom.MetricIdentifier{Name: name}, Timestamp: metav1.Now(), Value: metric.Value})
	}
	if object != "pods/*" {
		at := slices.IndexFunc(space.custom, func(metric Metric) bool { return metric.Object == object && metric.Name == name })
		if at < 0 {
			return nil, fmt.Errorf("there is no metric %s of %s", name, object)
		}
		tell(space.custom[at], rest[0], rest[max(0, len(rest)-2)])
		return list, nil
	}
	pods, err := m.running(ctx, namespace, selector)
	for _, pod := range pods {
		for _, metric := range slices.Backward(space.custom) {
			if metric.Object == "" && metric.Name == name && selects(metric.Selector, pod.Labels) {
				tell(metric, "Pod", pod.Name)
				break
			}
		}
	}
	return list, err
}

func externalMetrics(space metricSpace, selector labels.Selector, name string) (any, error) {
	list := external.ExternalMetricValueList{TypeMeta: metav1.TypeMeta{APIVersion: external.SchemeGroupVersion.String(), Kind: "ExternalMetricValueList"}, Items: []external.ExternalMetricValue{}}
	for _, metric := range space.external {
		carried, err := labels.ConvertSelectorToLabelsMap(metric.Selector)
		if err != nil {
			return nil, fmt.Errorf("read the labels of metric %s: %w", name, err)
		}
		if metric.Name == name && selector.Matches(carried) {
			list.Items = append(list.Items, external.ExternalMetricValue{MetricName: name, MetricLabels: carried, Timestamp: metav1.Now(), Value: metric.Value})
		}
	}
	return list, nil
}

// running lists the pods that run, by name.
func (m *MetricsAPI) running(ctx context.Context, namespace string, selector labels.Selector) ([]corev1.Pod, error) {
	list, err := m.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{LabelSelector: selector.String(), ResourceVersion: "0"})
	if err != nil {
		return nil, fmt.Errorf("list pods: %w", err)
	}
	pods := slices.DeleteFunc(list.Items, func(pod corev1.Pod) bool {
		return pod.Status.Phase != corev1.PodRunning || pod.DeletionTimestamp != nil
	})
	slices.SortFunc(pods, func(a, b corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return pods, nil
}

// selects reports whether a selector, * for all, matches the labels.
func selects(selector string, of map[string]string) bool {
	if selector == "*" {
		return true
	}
	parsed, err := labels.Parse(selector)
	return err == nil && parsed.Matches(labels.Set(of))
}

func answer(w http.ResponseWriter, code int, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(what)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	answer(w, code, metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: int32(code), Reason: reason, Message: message})
}
