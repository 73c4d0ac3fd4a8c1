package app

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/sdk/resource"
	"k8s.io/component-base/tracing"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/release"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/causes"
)

const (
	// defaultTraceEndpoint is where OTLP is taken if the file names no place.
	defaultTraceEndpoint = "localhost:4317"
	// traceTrouble is how often trouble with the endpoint is logged.
	traceTrouble = time.Minute
)

// startTracing has controllers make spans, if the flags ask for it, and returns what sends
// the last ones. Spans wait in memory, and those that find no room are dropped: nobody waits
// for the endpoint.
func (p *process) startTracing(ctx context.Context) (stop func(), err error) {
	if p.Tracing == nil {
		return func() {}, nil
	}
	logger := klog.FromContext(ctx)
	endpoint := ptr.Deref(p.Tracing.Endpoint, defaultTraceEndpoint)
	if ptr.Deref(p.Tracing.SamplingRatePerMillion, 0) == 0 {
		logger.Info("The tracing configuration sets no samplingRatePerMillion: nothing is traced", "endpoint", endpoint)
	}
	host, err := os.Hostname()
	if err != nil {
		return nil, fmt.Errorf("get the host name for traces: %w", err)
	}
	ctx = context.WithoutCancel(ctx)
	provider, err := tracing.NewProvider(ctx, p.Tracing, nil, []resource.Option{resource.WithAttributes(
		attribute.String("service.name", component), attribute.String("service.version", release.Version()), attribute.String("service.instance.id", host))})
	if err != nil {
		return nil, fmt.Errorf("send traces to %s: %w", endpoint, err)
	}
	otel.SetErrorHandler(&traceErrors{logger: logger, endpoint: endpoint, now: time.Now})
	causes.Use(provider)
	return func() {
		causes.Use(nil)
		ctx, cancel := context.WithTimeout(ctx, flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			logger.Info("The last spans were not sent", "endpoint", endpoint, "err", err)
		}
	}, nil
}

// traceErrors logs trouble with the endpoint, though not each time.
type traceErrors struct {
	logger   klog.Logger
	endpoint string
	now      func() time.Time

	mu   sync.Mutex
	last time.Time
}

// Handle takes an error of the library.
func (e *traceErrors) Handle(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	if !e.last.IsZero() && now.Sub(e.last) < traceTrouble {
		return
	}
	e.last = now
	e.logger.Error(err, "Cannot send spans; they are dropped", "endpoint", e.endpoint)
}
