package integration

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// receiver keeps the spans that are sent to it.
type receiver struct {
	collector.UnimplementedTraceServiceServer
	mu    sync.Mutex
	spans []sent
	whole strings.Builder
}

// sent is a span, with the words of its attributes.
type sent struct {
	name, service, trace, id, parent string
	about                            map[string]string
}

// startReceiver returns a receiver, and its address.
func startReceiver(t *testing.T) (*receiver, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r, server := &receiver{}, grpc.NewServer()
	collector.RegisterTraceServiceServer(server, r)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return r, listener.Addr().String()
}

// Export takes spans.
func (r *receiver) Export(_ context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(&r.whole, request)
	for _, of := range request.ResourceSpans {
		service := ""
		for _, attribute := range of.Resource.Attributes {
			if attribute.Key == "service.name" {
				service = attribute.Value.GetStringValue()
			}
		}
		for _, scope := range of.ScopeSpans {
			for _, span := range scope.Spans {
				r.spans = append(r.spans, sentSpan(span, service))
			}
		}
	}
	return &collector.ExportTraceServiceResponse{}, nil
}

// text is all that was sent.
func (r *receiver) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.whole.String()
}

func sentSpan(span *tracev1.Span, service string) sent {
	s := sent{name: span.Name, service: service, trace: string(span.TraceId), id: string(span.SpanId), parent: string(span.ParentSpanId), about: map[string]string{}}
	for _, attribute := range span.Attributes {
		s.about[attribute.Key] = attribute.Value.GetStringValue()
	}
	return s
}

// those returns the spans of a name and attributes, below a parent unless it is "".
func (r *receiver) those(parent, name string, about map[string]string) (all []sent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		fits := s.name == name && (parent == "" || s.parent == parent)
		for key, value := range about {
			fits = fits && s.about[key] == value
		}
		if fits {
			all = append(all, s)
		}
	}
	return all
}

// tracingTo returns the flag that sends all traces to an address.
func tracingTo(t *testing.T, address string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "traces.yaml")
	content := fmt.Sprintf("apiVersion: apiserver.config.k8s.io/v1beta1\nkind: TracingConfiguration\nendpoint: %s\nsamplingRatePerMillion: 1000000\n", address)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return "--tracing-config-file=" + file
}

func deployWeb(t *testing.T, client kubernetes.Interface, replicas int32) {
	t.Helper()
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To(replicas), Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "example.com/c"}}}},
	}}
	if _, err := client.AppsV1().Deployments("default").Create(t.Context(), web, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

func available(t *testing.T, client kubernetes.Interface, replicas int32) {
	t.Helper()
	harness.Eventually(t, patient, func(ctx context.Context) error {
		d, err := client.AppsV1().Deployments("default").Get(ctx, "web", metav1.GetOptions{})
		if err == nil && d.Status.AvailableReplicas != replicas {
			err = fmt.Errorf("%d of %d are available", d.Status.AvailableReplicas, replicas)
		}
		return err
	})
}

// TestATraceLeads follows a Deployment down to its pods in one trace, each span below the
// one that caused it.
func TestATraceLeads(t *testing.T) {
	t.Parallel()
	const replicas = 3
	spans, address := startReceiver(t)
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	pretendKubelet(t, cp)
	cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{tracingTo(t, address)}})
	client := clientOf(t, cp)
	deployWeb(t, client, replicas)
	available(t, client, replicas)
	var last error
	harness.Eventually(t, patient, func(context.Context) error {
		last = leadsToPods(spans, replicas)
		return last
	})
	for _, s := range spans.those("", "deployment-controller", nil) {
		if s.service != "kube-controller-manager" || s.about["key"] != "default/web" {
			t.Errorf("a span of the Deployment is %+v", s)
		}
	}
}

// leadsToPods looks for the chain of spans.
func leadsToPods(spans *receiver, replicas int) error {
	made := spans.those("", "create", map[string]string{"kind": "ReplicaSet", "controller": "deployment-controller", "namespace": "default"})
	if len(made) != 1 {
		return fmt.Errorf("%d spans are the creation of the ReplicaSet", len(made))
	}
	of := spans.those("", "deployment-controller", map[string]string{"key": "default/web"})
	if !slices.ContainsFunc(of, func(s sent) bool { return s.id == made[0].parent && s.trace == made[0].trace }) {
		return fmt.Errorf("none of %d reconciles of the Deployment has the creation below it", len(of))
	}
	reconciles := spans.those(made[0].id, "replicaset-controller", nil)
	if len(reconciles) == 0 {
		return fmt.Errorf("no reconcile of the ReplicaSet is below its creation: %+v", spans.those("", "replicaset-controller", nil))
	}
	pods := 0
	for _, reconcile := range reconciles {
		for _, pod := range spans.those(reconcile.id, "create", map[string]string{"kind": "Pod"}) {
			pods++
			if pod.trace != made[0].trace || pod.about["result"] != "done" {
				return fmt.Errorf("the creation of a pod is %+v, of another trace than %+v", pod, made[0])
			}
		}
	}
	if pods != replicas {
		return fmt.Errorf("%d creations of pods are below the reconcile of the ReplicaSet", pods)
	}
	return nil
}

// TestATraceEndpointThatDoesNotAnswerHoldsUpNothing has one that takes the connection and
// says nothing: the same is done as without, and the stop is clean and soon.
func TestATraceEndpointThatDoesNotAnswerHoldsUpNothing(t *testing.T) {
	t.Parallel()
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	pretendKubelet(t, cp)
	manager := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{"--leader-elect=true", tracingTo(t, silent.Addr().String())}})
	client := clientOf(t, cp)
	leads(t, client, "")
	deployWeb(t, client, 20)
	available(t, client, 20)
	began := time.Now()
	if err := manager.Stop(); err != nil {
		t.Error(err)
	}
	if took, code := time.Since(began), manager.Process().ExitCode(); took > 10*time.Second || code != 0 {
		t.Errorf("the stop took %s and ended with %d", took, code)
	}
	if now, err := holder(t.Context(), client); err != nil || now != "" {
		t.Errorf("the lease is held by %q, %v", now, err)
	}
}
