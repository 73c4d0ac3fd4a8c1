package main

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

func TestZoneFigures(t *testing.T) {
	const grace = 10 * time.Second
	seen := map[string]nodeLoss{
		"a": {heartbeat: sec(0), tainted: sec(12)},
		"b": {heartbeat: sec(1), tainted: sec(22)},
		"c": {heartbeat: sec(2), tainted: sec(72.5)}, // more than 55 s after the first
		"d": {heartbeat: sec(2)},
	}
	pods := map[string]string{"p": "a", "q": "a", "r": "b"}
	events := []harness.TimedAuditEvent{
		request("patch", "pods/status", "p", 409, 10), request("patch", "pods/status", "p", 200, 12), request("patch", "pods/status", "p", 200, 30),
		request("patch", "pods/status", "q", 200, 12.5), request("update", "pods/status", "r", 200, 16),
	}
	got, err := zoneFigures(seen, pods, slices.Values(events), grace)
	if err != nil {
		t.Fatal(err)
	}
	want := []report.Figure{
		{Name: "last pod marked after the first", Unit: "s", Value: 4},
		{Name: "pod marked after its node's grace, p50", Unit: "s", Value: 2.5},
		{Name: "pod marked after its node's grace, max", Unit: "s", Value: 5},
		{Name: "nodes tainted within 55 s, at most", Value: 2},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, err := zoneFigures(seen, pods, slices.Values(events[:4]), grace); err == nil {
		t.Error("a pod that nobody marks is no error")
	}
	if _, err := zoneFigures(map[string]nodeLoss{}, pods, slices.Values(events), grace); err == nil {
		t.Error("a node without a heartbeat is no error")
	}
}
