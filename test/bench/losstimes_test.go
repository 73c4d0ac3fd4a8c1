package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// sec is that many seconds after noon.
func sec(seconds float64) time.Time { return noon.Add(time.Duration(seconds * float64(time.Second))) }

// request is one of a controller, which the API server took at that second.
func request(verb, subject, name string, code int, seconds float64) harness.TimedAuditEvent {
	resource, subresource, _ := strings.Cut(subject, "/")
	var event harness.TimedAuditEvent
	text := fmt.Sprintf(`{"verb":%q,"objectRef":{"resource":%q,"subresource":%q,"name":%q},"responseStatus":{"code":%d}}`, verb, resource, subresource, name, code)
	if err := json.Unmarshal([]byte(text), &event); err != nil {
		panic(err)
	}
	event.Received = sec(seconds)
	return event
}

func TestLossFigures(t *testing.T) {
	const grace, tolerated = 10 * time.Second, time.Second
	lost := func(heartbeat, unknown, tainted float64) nodeLoss {
		return nodeLoss{heartbeat: sec(heartbeat), unknown: sec(unknown), tainted: sec(tainted)}
	}
	one := map[string]nodeLoss{"a": lost(0, 12.5, 13)}
	for name, tc := range map[string]struct {
		seen   map[string]nodeLoss
		pods   map[string]string
		events []harness.TimedAuditEvent
		// want is marked p50 and max, deleted p50 and max; nil is an error.
		want []float64
	}{
		"from the write that the watch showed, not from the event": {
			one, map[string]string{"p": "a"},
			[]harness.TimedAuditEvent{
				request("patch", "nodes/status", "a", 200, 12), request("patch", "nodes", "a", 200, 12.75), request("delete", "pods", "p", 200, 14.25)},
			[]float64{2, 2, 0.5, 0.5}},
		"earlier and later writes of the same node are others": {
			one, map[string]string{"p": "a"},
			[]harness.TimedAuditEvent{
				request("patch", "nodes/status", "a", 200, 3), request("update", "nodes/status", "a", 200, 12), request("patch", "nodes/status", "a", 200, 15),
				request("patch", "nodes", "a", 200, 12.25), request("patch", "nodes", "a", 200, 12.75), request("patch", "nodes", "a", 200, 13.5), request("delete", "pods", "p", 200, 14.75)},
			[]float64{2, 2, 1, 1}},
		"a refused write has changed nothing": {
			one, map[string]string{"p": "a"},
			[]harness.TimedAuditEvent{
				request("update", "nodes/status", "a", 200, 11), request("update", "nodes/status", "a", 409, 12), request("patch", "nodes", "a", 200, 12.75),
				request("delete", "pods", "p", 429, 14), request("delete", "pods", "p", 200, 16.75), request("delete", "pods", "p", 200, 19)},
			[]float64{1, 1, 3, 3}},
		"what happens too early is negative": {
			one, map[string]string{"p": "a"},
			[]harness.TimedAuditEvent{
				request("patch", "nodes/status", "a", 200, 9), request("patch", "nodes", "a", 200, 9), request("delete", "pods", "p", 200, 9.5)},
			[]float64{-1, -1, -0.5, -0.5}},
		"median and highest over nodes and over pods": {
			map[string]nodeLoss{"a": lost(0, 11, 11), "b": lost(1, 15, 15), "c": lost(2, 20, 20)},
			map[string]string{"p": "a", "q": "a", "r": "b", "s": "c"},
			[]harness.TimedAuditEvent{
				request("patch", "nodes/status", "a", 200, 11), request("patch", "nodes/status", "b", 200, 13), request("patch", "nodes/status", "c", 200, 19),
				request("patch", "nodes", "a", 200, 11), request("patch", "nodes", "b", 200, 13), request("patch", "nodes", "c", 200, 19),
				request("delete", "pods", "p", 200, 12), request("delete", "pods", "q", 200, 13), request("delete", "pods", "r", 200, 16), request("delete", "pods", "s", 200, 25)},
			[]float64{2, 7, 1, 5}},
		"a pod without a deletion is an error": {
			one, map[string]string{"p": "a"},
			[]harness.TimedAuditEvent{
				request("patch", "nodes/status", "a", 200, 12), request("patch", "nodes", "a", 200, 12.75), request("patch", "pods/status", "p", 200, 14)},
			nil},
		"a node whose status nobody wrote is an error": {
			one, map[string]string{"p": "a"},
			[]harness.TimedAuditEvent{request("patch", "nodes", "a", 200, 12.75), request("delete", "pods", "p", 200, 14)},
			nil},
		"a node without a heartbeat is an error": {
			map[string]nodeLoss{"a": {unknown: sec(12), tainted: sec(13)}}, nil,
			[]harness.TimedAuditEvent{request("patch", "nodes/status", "a", 200, 12)},
			nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := lossFigures(tc.seen, tc.pods, slices.Values(tc.events), grace, tolerated)
			var want []report.Figure
			if tc.want != nil {
				for i, of := range []string{"node marked unknown after its grace, p50", "node marked unknown after its grace, max",
					"pod deleted after its toleration, p50", "pod deleted after its toleration, max"} {
					want = append(want, report.Figure{Name: of, Unit: "s", Value: tc.want[i]})
				}
			}
			if diff := cmp.Diff(want, got); diff != "" || (err != nil) != (tc.want == nil) {
				t.Errorf("error %v, figures (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestNodeLoss(t *testing.T) {
	lease := func(seconds float64) *coordinationv1.Lease {
		renewed := metav1.NewMicroTime(sec(seconds))
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &renewed}}
	}
	node := func(ready corev1.ConditionStatus, heartbeat float64, taints ...corev1.TaintEffect) *corev1.Node {
		n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{
			Type: corev1.NodeReady, Status: ready, LastHeartbeatTime: metav1.NewTime(sec(heartbeat))}}}}
		for _, effect := range taints {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: corev1.TaintNodeUnreachable, Effect: effect})
		}
		return n
	}
	const yes, unknown = corev1.ConditionTrue, corev1.ConditionUnknown
	var l nodeLoss
	check := func(event string, want nodeLoss) {
		t.Helper()
		if l != want {
			t.Errorf("after %s: got %v, want %v", event, l, want)
		}
	}
	l.hadLease(lease(1))
	check("the list of leases", nodeLoss{heartbeat: sec(1)})
	l.sawLease(lease(1), lease(1), sec(2))
	check("a lease without a renewal", nodeLoss{heartbeat: sec(1)})
	l.sawLease(lease(1), lease(3), sec(3.5))
	check("a renewal", nodeLoss{heartbeat: sec(3.5)})
	l.hadLease(lease(2))
	check("an older list", nodeLoss{heartbeat: sec(3.5)})
	l.sawNode(node(yes, 1), node(yes, 4), sec(4.5))
	check("a status", nodeLoss{heartbeat: sec(4.5)})
	l.sawNode(node(yes, 4), node(yes, 4), sec(5))
	check("another change of the node", nodeLoss{heartbeat: sec(4.5)})
	l.sawNode(node(yes, 4), node(unknown, 4), sec(20))
	check("the mark", nodeLoss{heartbeat: sec(4.5), unknown: sec(20)})
	l.sawNode(node(unknown, 4), node(unknown, 4, corev1.TaintEffectNoSchedule), sec(21))
	check("the taint for the scheduler", nodeLoss{heartbeat: sec(4.5), unknown: sec(20)})
	l.sawNode(node(unknown, 4), node(unknown, 4, corev1.TaintEffectNoSchedule, corev1.TaintEffectNoExecute), sec(22))
	l.sawNode(node(unknown, 4), node(unknown, 4, corev1.TaintEffectNoExecute), sec(23))
	check("the taint that evicts", nodeLoss{heartbeat: sec(4.5), unknown: sec(20), tainted: sec(22)})
}
