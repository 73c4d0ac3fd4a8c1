package memory

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudprovider "k8s.io/cloud-provider"
)

func TestConfig(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "",
		"instances: [a]":            "",
		"without: [routes]":         "",
		"region: north":             `unknown field "region"`,
		"console: 192.0.2.1:1":      "open the console",
		"instances: {a: running}":   "cannot unmarshal",
		"console: no port":          "missing port",
		"without: [clusterID]\n- a": "read the configuration",
	} {
		_, err := New(strings.NewReader(text))
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
	if cloud, err := New(nil); err != nil || !cloud.HasClusterID() {
		t.Errorf("without a configuration: %v %v", cloud, err)
	}
}

// made is a cloud with one instance and no routes.
func made(t *testing.T) *Cloud {
	t.Helper()
	c, err := New(strings.NewReader("{without: [routes, clusterID], instances: [a]}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := c.Routes(); ok || c.HasClusterID() {
		t.Error("has what it is without")
	}
	return c.(*Cloud)
}

func TestTheConsoleChangesTheCloud(t *testing.T) {
	c := made(t)
	console := c.console()
	do := func(method, path string, code int) string {
		t.Helper()
		w := httptest.NewRecorder()
		console.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		if w.Code != code {
			t.Errorf("%s %s: %d, want %d", method, path, w.Code, code)
		}
		return w.Body.String()
	}
	do(http.MethodPut, "/instances/b?state=off", http.StatusOK)
	do(http.MethodPut, "/instances/c", http.StatusOK)
	do(http.MethodDelete, "/instances/a", http.StatusOK)
	do(http.MethodPut, "/instances/b?state=asleep", http.StatusBadRequest)
	do(http.MethodPut, "/failures/InstanceExists?of=b&times=1", http.StatusOK)
	do(http.MethodPut, "/failures/InstanceExists?times=often", http.StatusBadRequest)
	ask := func(name string) string {
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		exists, err := c.InstanceExists(t.Context(), node)
		if err != nil {
			return err.Error()
		}
		down, _ := c.InstanceShutdown(t.Context(), node)
		return map[bool]string{true: "is", false: "is not"}[exists] + map[bool]string{true: " off", false: ""}[down]
	}
	got := []string{ask("a"), ask("b"), ask("b"), ask("c")}
	if diff := cmp.Diff([]string{"is not", errOutOfOrder.Error(), "is off", "is"}, got); diff != "" {
		t.Errorf("instances (-want +got):\n%s", diff)
	}
	var state State
	if err := json.Unmarshal([]byte(do(http.MethodGet, "/", http.StatusOK)), &state); err != nil || len(state.Calls) != 7 || !state.Calls[2].Failed {
		t.Errorf("state: %v %+v", err, state)
	}
}

func TestRoutesAreThoseOfTheCluster(t *testing.T) {
	c := made(t)
	for cluster, cidr := range map[string]string{"one": "10.1.0.0/24", "two": "fd00::/64"} {
		if err := c.CreateRoute(t.Context(), cluster, "uid", &cloudprovider.Route{TargetNode: "a", DestinationCIDR: cidr}); err != nil {
			t.Fatal(err)
		}
	}
	routes, err := c.ListRoutes(t.Context(), "two")
	if err != nil || len(routes) != 1 || routes[0].DestinationCIDR != "fd00::/64" {
		t.Fatalf("routes %v, %v", routes, err)
	}
	if err := c.DeleteRoute(t.Context(), "two", routes[0]); err != nil || len(c.state.Routes) != 1 {
		t.Errorf("left: %v, %v", c.state.Routes, err)
	}
}
