package app

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What a resource of the same name in another group holds proves nothing.
func TestLiveReadsAreOfTheirOwnGroup(t *testing.T) {
	server := newAPIServer(t)
	server.served = map[string][]string{"metrics.k8s.io/v1beta1": {"pods"}, "apps.example.com/v1": {"statefulsets"}, "batch/v1": {"jobs"}}
	cc, err := newControllerContext(t.Context(), testProcess(t, server.config(t)), t.Name(), nil)
	defer cc.close()
	if err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		resource schema.GroupResource
		says     string
	}{
		{schema.GroupResource{Resource: "pods"}, "discovery has pods.metrics.k8s.io only"},
		{schema.GroupResource{Group: "apps", Resource: "statefulsets"}, "discovery has statefulsets.apps.example.com only"},
	} {
		if _, err := cc.live(t.Context(), tc.resource, "team", metav1.ListOptions{}); err == nil || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", tc.resource, err)
		}
	}
	_, _ = cc.live(t.Context(), schema.GroupResource{Group: "batch", Resource: "jobs"}, "team", metav1.ListOptions{})
	server.mu.Lock()
	defer server.mu.Unlock()
	if !slices.Contains(server.asked, "GET /apis/batch/v1/namespaces/team/jobs") {
		t.Errorf("what is served was not read: %q", server.asked)
	}
	if slices.ContainsFunc(server.asked, func(asked string) bool {
		return strings.Contains(asked, "metrics.k8s.io/v1beta1/") || strings.Contains(asked, "example.com/v1/")
	}) {
		t.Errorf("asked %q", server.asked)
	}
}
