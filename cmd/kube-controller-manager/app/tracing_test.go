package app

import (
	"errors"
	"net"
	"testing"
	"time"

	tracingapi "k8s.io/component-base/tracing/api/v1"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/causes"
)

// TestATraceEndpointThatDoesNotAnswerHoldsUpNobody has one that takes the connection and
// says nothing, and more spans than are kept.
func TestATraceEndpointThatDoesNotAnswerHoldsUpNobody(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	c := testConfig(t)
	c.Tracing = &tracingapi.TracingConfiguration{Endpoint: ptr.To(silent.Addr().String()), SamplingRatePerMillion: ptr.To[int32](1000000)}
	stop, err := testProcess(t, c).startTracing(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for range 10000 {
		_, span := causes.Current().Tracer().Start(t.Context(), "a")
		span.End()
	}
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("10000 spans took %s", took)
	}
	began = time.Now()
	stop()
	if took := time.Since(began); took > 5*time.Second {
		t.Errorf("the stop took %s", took)
	}
	if causes.Current() != nil {
		t.Error("spans are still made")
	}
}

func TestWithoutAConfigurationNothingIsTraced(t *testing.T) {
	stop, err := testProcess(t, testConfig(t)).startTracing(t.Context())
	if err != nil || causes.Current() != nil {
		t.Errorf("%v, %v", causes.Current(), err)
	}
	stop()
}

func TestTroubleWithTheTraceEndpointIsLoggedOnceAMinute(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	now := time.Unix(1000, 0)
	errs := &traceErrors{logger: logger, endpoint: "here", now: func() time.Time { return now }}
	for range 4 { // at 0, 30, 60 and 90 seconds
		errs.Handle(errors.New("refused"))
		now = now.Add(traceTrouble / 2)
	}
	if lines := len(logger.GetSink().(ktesting.Underlier).GetBuffer().Data()); lines != 2 {
		t.Errorf("%d lines", lines)
	}
}
