package main

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

func TestRequests(t *testing.T) {
	var events []harness.TimedAuditEvent
	for _, line := range []string{
		`{"auditID":"1","verb":"watch","userAgent":"kcm/v1","objectRef":{"resource":"pods"}}`,
		`{"auditID":"1","verb":"watch","userAgent":"kcm/v1","objectRef":{"resource":"pods"}}`,
		`{"auditID":"2","verb":"update","userAgent":"kcm/v1","objectRef":{"resource":"deployments","subresource":"status"}}`,
		`{"auditID":"3","verb":"get","userAgent":"kcm/v1","requestURI":"/api?timeout=32s"}`,
		`{"auditID":"4","verb":"get","userAgent":"bench/v0","objectRef":{"resource":"pods"}}`,
		`{"auditID":"5","verb":"get","userAgent":"kcm-of-another/v1","objectRef":{"resource":"pods"}}`,
	} {
		var event harness.TimedAuditEvent
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Fatal(err)
		}
		events = append(events, event)
	}
	want := map[string]int{"watch pods": 1, "update deployments/status": 1, "get /api": 1}
	if diff := cmp.Diff(want, requests(slices.Values(events), "../builds/kcm")); diff != "" {
		t.Error(diff)
	}
}

func TestMetric(t *testing.T) {
	text := "# HELP a b\ngo_goroutines_total 5\ngo_goroutines 812\nheap 1.5e+07\n"
	if got := metric(text, "go_goroutines"); got != 812 {
		t.Errorf("go_goroutines is %v", got)
	}
	if got := metric(text, "heap"); got != 15_000_000 {
		t.Errorf("heap is %v", got)
	}
	if got := held("a_stale_sync_skips_total{group=\"\"} 2\n# TYPE a_stale_sync_skips_total counter\nb_stale_sync_skips_total 3\nc_total 9\n"); got != 5 {
		t.Errorf("%d keys were held, want 5", got)
	}
	if got := metric(text, "none"); got != 0 {
		t.Errorf("none is %v", got)
	}
}

func TestParse(t *testing.T) {
	o, err := parse([]string{"-quick", "-rollout-nodes=7", "-only=idle,rollout", "-reference-flags=--a=1 --b"})
	if err != nil {
		t.Fatal(err)
	}
	if len(o.oursFlags) != 0 || !slices.Equal(o.referenceFlags, []string{"--a=1", "--b"}) {
		t.Errorf("flags of one binary: ours %q, the reference %q", o.oursFlags, o.referenceFlags)
	}
	if got := o.sizes["rollout"]; got["nodes"] != 7 || got["replicas"] != 12 {
		t.Errorf("a size that is given wins over -quick, the others are quick: %v", got)
	}
	var names []string
	for _, s := range o.scenarios {
		names = append(names, s.name)
	}
	if !slices.Equal(names, []string{"rollout", "idle"}) {
		t.Errorf("scenarios %v", names)
	}
	for _, bad := range [][]string{{"-only=none"}, {"-limits=some"}, {"-quick=maybe"}, {"-floor", "-only=idle"}, {"-floor", "-limits=default"}} {
		if _, err := parse(bad); err == nil {
			t.Errorf("%v is taken", bad)
		}
	}
}

func TestQueues(t *testing.T) {
	got := queues("workqueue_work_duration_seconds_bucket{name=\"a\",le=\"1\"} 9\nworkqueue_work_duration_seconds_sum{name=\"a\"} 2.5\n" +
		"workqueue_work_duration_seconds_count{name=\"a\"} 5\nworkqueue_queue_duration_seconds_sum{name=\"a\"} 4\nother{name=\"b\"} 1\n")
	if diff := cmp.Diff(map[string]report.Queue{"a": {Count: 5, Working: 2.5, Waiting: 4}}, got); diff != "" {
		t.Error(diff)
	}
}

func TestMost(t *testing.T) {
	noon := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	at := func(seconds ...float64) []time.Time {
		var all []time.Time
		for _, s := range seconds {
			all = append(all, noon.Add(time.Duration(s*float64(time.Second))))
		}
		return all
	}
	for name, tc := range map[string]struct {
		times []time.Time
		want  int
	}{
		"none":                              {nil, 0},
		"one every five seconds":            {at(0, 5, 10), 1},
		"in any order":                      {at(9, 0, 4.9, 5), 3},
		"one a moment too early is another": {at(0, 4.999), 2},
	} {
		t.Run(name, func(t *testing.T) {
			if got := most(tc.times, probeWindow); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}
