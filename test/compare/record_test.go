package compare

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// request is an audit line as the API server writes it.
func request(t *testing.T, line string) harness.AuditEvent {
	t.Helper()
	var event harness.AuditEvent
	if err := json.Unmarshal([]byte(line), &event); err != nil {
		t.Fatal(err)
	}
	return event
}

const user = `"user":{"username":"system:serviceaccount:kube-system:deployment-controller"}`

func status(t *testing.T, body string) harness.AuditEvent {
	return request(t, `{"verb":"update",`+user+`,"objectRef":{"resource":"deployments","subresource":"status"},"responseStatus":{"code":200},
		"responseObject":{"kind":"Deployment","apiVersion":"apps/v1","metadata":{"name":"web","namespace":"story-0001","uid":"u"},"status":`+body+`}}`)
}

func TestAStatusLeavesTheValuesOfEachFieldInOrder(t *testing.T) {
	r := NewRecord("story-0001", nil, []harness.AuditEvent{
		status(t, `{"replicas":2,"conditions":[{"type":"Available","status":"False","reason":"Few","message":"1 of 2"}]}`),
		status(t, `{"replicas":3,"conditions":[{"type":"Available","status":"False","reason":"Few","message":"2 of 2"}],"phase":"Up"}`),
		status(t, `{"replicas":1,"conditions":[{"type":"Available","status":"True","reason":"Enough"}]}`),
	}, nil)
	want := map[string][][]string{
		"status.conditions[Available]": {{"False Few # of #", "True Enough "}},
		"status.phase":                 {{"Up", absent}},
	}
	if diff := cmp.Diff(want, r.Statuses["Deployment web"]); diff != "" {
		t.Error(diff)
	}
	if got := r.Numbers["Deployment web"]["status.replicas"]; got != [2]float64{0, 3} {
		t.Errorf("replicas went through %v", got)
	}
	if got := r.Writes["deployment-controller"]["update deployments/status"]; got != 3 {
		t.Errorf("%d writes", got)
	}
	if diff := cmp.Diff([]string{"deployment-controller"}, r.Authors["Deployment web"]); diff != "" {
		t.Error(diff)
	}
}

func TestAnAnswerOfMetadataIsAboutItsObject(t *testing.T) {
	partly := func(resource, group string) harness.AuditEvent {
		return request(t, `{"verb":"patch",`+user+`,"objectRef":{"resource":"`+resource+`","apiGroup":"`+group+`"},"responseStatus":{"code":200},
			"responseObject":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1","metadata":{"name":"web","namespace":"story-0001","uid":"u"}}}`)
	}
	r := NewRecord("story-0001", nil, []harness.AuditEvent{partly("pods", ""), partly("replicasets", "apps"), partly("networkpolicies", "networking.k8s.io"), partly("widgets", "example.com")}, nil)
	if diff := cmp.Diff([]string{"NetworkPolicy.networking web", "PartialObjectMetadata.meta web", "Pod web", "ReplicaSet web"}, slices.Sorted(maps.Keys(r.Authors))); diff != "" {
		t.Error(diff)
	}
}

func TestOfAPodOnlyWhatControllersSayIsFollowed(t *testing.T) {
	pod := func(status string) harness.AuditEvent {
		return request(t, `{"verb":"update",`+user+`,"objectRef":{"resource":"pods","subresource":"status"},"responseStatus":{"code":200},
			"responseObject":{"kind":"Pod","metadata":{"name":"web","uid":"u"},"status":`+status+`}}`)
	}
	r := NewRecord("story-0001", nil, []harness.AuditEvent{
		pod(`{"phase":"Running","podIP":"10.0.0.1","conditions":[{"type":"Ready","status":"True"},{"type":"DisruptionTarget","status":"True","reason":"Taken"}]}`),
		pod(`{"phase":"Failed","podIP":"10.0.0.1","conditions":[{"type":"Ready","status":"False","reason":"Gone"},{"type":"DisruptionTarget","status":"True","reason":"Taken"}]}`),
	}, nil)
	want := map[string][][]string{
		"status.phase":                        {{"Failed"}},
		"status.conditions[Ready]":            {{"False Gone "}},
		"status.conditions[DisruptionTarget]": {{"True Taken "}},
	}
	if diff := cmp.Diff(want, r.Statuses["Pod web"]); diff != "" {
		t.Error(diff)
	}
}

func TestOfANodeTheVolumesInUseAreNotFollowed(t *testing.T) {
	r := NewRecord("story-0001", nil, []harness.AuditEvent{request(t, `{"verb":"patch",`+user+`,"objectRef":{"resource":"nodes","subresource":"status"},"responseStatus":{"code":200},
		"responseObject":{"kind":"Node","metadata":{"name":"n","uid":"u"},"status":{"volumesInUse":["v"],"volumesAttached":[{"name":"v","devicePath":""}]}}}`)}, nil)
	want := map[string][][]string{"status.volumesAttached": {{`[{"devicePath":"","name":"v"}]`}}}
	if diff := cmp.Diff(want, r.Statuses["Node n"]); diff != "" {
		t.Error(diff)
	}
}

func TestEventsAreCountedByFormAndComponent(t *testing.T) {
	event := func(name string, code, count int, message string) harness.AuditEvent {
		return request(t, `{"verb":"create",`+user+`,"objectRef":{"resource":"events"},"responseStatus":{"code":`+encode(code)+`},
			"responseObject":{"kind":"Event","metadata":{"name":"`+name+`"},"involvedObject":{"kind":"ReplicaSet","name":"web"},
			"type":"Normal","reason":"Created","message":"`+message+`","count":`+encode(count)+`,"source":{"component":"replicaset-controller"}}}`)
	}
	r := NewRecord("story-0001", nil, []harness.AuditEvent{
		event("a", 201, 1, "made 1"), event("a", 200, 3, "made 1"), event("b", 201, 1, "made 2"), event("c", 403, 1, "made 3"),
		event("d", 201, 1, "(combined from similar events): made 4"),
	}, nil)
	want := map[string]map[string]int{"replicaset-controller": {"ReplicaSet web: Normal Created: made #": 5}}
	if diff := cmp.Diff(want, r.Events); diff != "" {
		t.Error(diff)
	}
	if len(r.Writes) != 0 {
		t.Errorf("events are counted as writes: %v", r.Writes)
	}
}

func TestNamesOfRefusedCreatesAreKnownByTheirPrefix(t *testing.T) {
	refused := request(t, `{"verb":"create",`+user+`,"objectRef":{"resource":"pods"},"responseStatus":{"code":403},"requestObject":{"metadata":{"generateName":"web-"}}}`)
	objects := []map[string]any{{"kind": "ReplicaSet", "metadata": map[string]any{"name": "web"}, "status": `pods "web-bcdfg" is forbidden`}}
	r := NewRecord("story-0001", objects, []harness.AuditEvent{refused}, nil)
	if got, want := r.Objects["ReplicaSet web"][0], "kind: ReplicaSet\nmetadata:\n  name: web\nstatus: pods \"web-*\" is forbidden\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestNamesOfPodsAreKnownByTheirOwner(t *testing.T) {
	for _, kind := range []string{"ReplicaSet", "ReplicationController", "DaemonSet", "Job"} {
		owner := map[string]any{"kind": kind, "metadata": map[string]any{"name": "web"}, "status": `pods "web-bcdfg" is forbidden`}
		other := map[string]any{"kind": "Deployment", "metadata": map[string]any{"name": "up"}, "status": `pods "web-bcdfg", pods "up-bcdfg"`}
		r := NewRecord("story-0001", []map[string]any{owner, other}, nil, nil)
		if got, want := r.Objects["Deployment up"][0], "kind: Deployment\nmetadata:\n  name: up\nstatus: pods \"web-*\", pods \"up-bcdfg\"\n"; got != want {
			t.Errorf("%s: got %q, want %q", kind, got, want)
		}
	}
}

func TestAnAttachmentIsKnownByItsVolumeAndNode(t *testing.T) {
	name := "csi-" + strings.Repeat("0a", 32)
	made := request(t, `{"verb":"create","user":{"username":"system:serviceaccount:kube-system:attachdetach-controller"},
		"objectRef":{"resource":"volumeattachments","apiGroup":"storage.k8s.io","name":"`+name+`"},"responseStatus":{"code":201},"requestObject":{"kind":"VolumeAttachment",
		"metadata":{"name":"`+name+`"},"spec":{"nodeName":"story-0001-node","source":{"persistentVolumeName":"pvc-0a1b2c3d-1111-2222-3333-444455556666"}}}}`)
	objects := []map[string]any{{"kind": "ConfigMap", "metadata": map[string]any{"name": name}}}
	r := NewRecord("story-0001", objects, []harness.AuditEvent{made}, nil)
	if len(r.Objects["ConfigMap csi-pvc-<uid>-$NS-node-*"]) != 1 {
		t.Errorf("got %v", r.Objects)
	}
}

func TestRequestsOfAKilledProcessWereRefusedByNobody(t *testing.T) {
	answered := func(code int, message string) harness.AuditEvent {
		return request(t, fmt.Sprintf(`{"verb":"delete",%s,"objectRef":{"resource":"pods","name":"web-1"},"responseStatus":{"code":%d,"message":%q}}`, user, code, message))
	}
	r := NewRecord("story-0001", nil, []harness.AuditEvent{
		answered(200, ""), answered(404, "not found"), answered(504, "the server was too slow"),
		answered(504, "Timeout: request did not complete within requested timeout - context canceled"),
		answered(409, "Operation cannot be fulfilled on pods: the object has been modified; please apply your changes"),
		answered(409, "Operation cannot be fulfilled on pods: admission webhook denied the request"),
	}, nil)
	want := map[string]map[string]int{"deployment-controller": {"delete pods": 1, "delete pods" + refused: 3, "delete pods" + conflict: 1}}
	if diff := cmp.Diff(want, r.Writes); diff != "" {
		t.Error(diff)
	}
}

func TestNamesWhosePrefixIsNotSaidAreTheSame(t *testing.T) {
	got := generatedNames([]map[string]any{
		{"kind": "EndpointSlice", "metadata": map[string]any{"name": "web-x7k2p", "labels": map[string]any{"kubernetes.io/service-name": "web"}}},
		{"kind": "EndpointSlice", "metadata": map[string]any{"name": "mine", "labels": map[string]any{"kubernetes.io/service-name": "web"}}},
		{"kind": "Pod", "metadata": map[string]any{"name": "own"}, "status": map[string]any{"resourceClaimStatuses": []any{
			map[string]any{"name": "gpu", "resourceClaimName": "own-gpu-h2vp9"}, map[string]any{"name": "none"}}}},
	}, nil)
	want := map[string]string{"web-x7k2p": "web-", "own-gpu-h2vp9": "own-gpu-"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestNamesThatComeFromTheUIDOfAJobAreTheSame(t *testing.T) {
	got := generatedNames([]map[string]any{
		{"kind": "Workload", "metadata": map[string]any{"name": "pi-668d464d5f"}, "spec": map[string]any{"controllerRef": map[string]any{"name": "pi"}}},
		{"kind": "PodGroup", "metadata": map[string]any{"name": "pi-668d464d5f-pi-pgt-0-5f4d84b6fb"}, "spec": map[string]any{
			"podGroupTemplateRef": map[string]any{"workload": map[string]any{"podGroupTemplateName": "pi-pgt-0"}}}},
		{"kind": "PodGroup", "metadata": map[string]any{"name": "mine"}, "spec": map[string]any{}},
	}, nil)
	want := map[string]string{"pi-668d464d5f": "pi-", "pi-668d464d5f-pi-pgt-0-5f4d84b6fb": "pi-pgt-0-"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
