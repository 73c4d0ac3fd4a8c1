package main

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

func TestBinderFigures(t *testing.T) {
	const binder, protection = `"user":{"username":"system:serviceaccount:kube-system:persistent-volume-binder"}`, `"user":{"username":"system:serviceaccount:kube-system:pv-protection-controller"}`
	var events []harness.TimedAuditEvent
	for _, line := range []string{
		`{"auditID":"1","verb":"update",` + binder + `,"responseStatus":{"code":200}}`,
		`{"auditID":"1","verb":"update",` + binder + `,"responseStatus":{"code":200}}`,
		`{"auditID":"2","verb":"update",` + binder + `,"responseStatus":{"code":409}}`,
		`{"auditID":"3","verb":"get",` + binder + `,"responseStatus":{"code":200}}`,
		`{"auditID":"4","verb":"update",` + protection + `,"responseStatus":{"code":409}}`,
		`{"auditID":"5","verb":"update",` + binder + `,"responseStatus":{"code":200}}`,
	} {
		var event harness.TimedAuditEvent
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
	want := []report.Figure{{Name: "binder's writes a pair", Value: 1.5}, {Name: "conflicts of all controllers", Value: 2}}
	if diff := cmp.Diff(want, binderFigures(slices.Values(events), 2)); diff != "" {
		t.Error(diff)
	}
}

func TestPacedKeepsItsRateWhateverOneTakes(t *testing.T) {
	var calls atomic.Int32
	begin := time.Now()
	all := make(chan struct{})
	err := paced(t.Context(), 20, 200, func(int) error {
		if calls.Add(1) == 20 {
			close(all)
		}
		// Each takes until the last has begun.
		<-all
		return nil
	})
	if took := time.Since(begin); err != nil || calls.Load() != 20 || took < 95*time.Millisecond {
		t.Errorf("%d calls in %s: %v", calls.Load(), took, err)
	}
	broken := errors.New("broken")
	if err := paced(t.Context(), 2, 1000, func(int) error { return broken }); !errors.Is(err, broken) {
		t.Errorf("got %v, want %v", err, broken)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := paced(ctx, 1000, 1, func(int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestVolumesOfANode(t *testing.T) {
	w := &world{sizes: map[string]int{"nodes": 3}}
	for name, tc := range map[string]struct {
		node, first int
		want        []string
	}{
		"of the first node":              {0, 0, []string{"kubernetes.io/csi/bench.example.com^pod-0", "kubernetes.io/csi/bench.example.com^pod-3", "kubernetes.io/csi/bench.example.com^pod-6"}},
		"of another":                     {2, 0, []string{"kubernetes.io/csi/bench.example.com^pod-2", "kubernetes.io/csi/bench.example.com^pod-5"}},
		"without the first pods":         {0, 4, []string{"kubernetes.io/csi/bench.example.com^pod-6"}},
		"of one whose pods are all gone": {2, 6, []string{}},
	} {
		if diff := cmp.Diff(tc.want, w.volumesOf(tc.node, tc.first, 7)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
