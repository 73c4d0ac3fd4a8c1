package harness

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestMetricsAPITellsWhatItWasTold(t *testing.T) {
	pod := func(name string, phase corev1.PodPhase) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": name}},
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}, {Name: "side"}}}, Status: corev1.PodStatus{Phase: phase}}
	}
	bare := pod("c", corev1.PodRunning)
	bare.Namespace = "bare"
	m := &MetricsAPI{client: fake.NewClientset(bare, pod("a", corev1.PodRunning), pod("b", corev1.PodRunning), pod("new", corev1.PodPending)), spaces: map[string]*metricSpace{}}
	one := func(selector, object, name, container, value string) Metric {
		return Metric{Selector: selector, Object: object, Name: name, Container: container, Value: resource.MustParse(value)}
	}
	m.SetUsage("bare", one("*", "", "cpu", NoContainer, "1"))
	m.SetUsage("ns", one("*", "", "cpu", "", "1"))
	m.SetUsage("ns", one("app=a", "", "cpu", "side", "3"))
	m.SetUsage("ns", one("*", "", "cpu", "", "2"))
	m.SetCustom("ns", one("app=a", "", "hits", "", "5"))
	m.SetCustom("ns", one("", "services/front", "hits", "", "7"))
	m.SetCustom("ns", one("", "namespaces/ns", "hits", "", "9"))
	m.SetExternal("ns", one("region=east", "", "queue", "", "20"))
	m.SetExternal("ns", one("region=west", "", "queue", "", "30"))
	m.Fail("off", true)

	const custom, external = "/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/", "/apis/external.metrics.k8s.io/v1beta1/namespaces/ns/"
	for path, want := range map[string]struct {
		code  int
		items int
		value string
	}{
		"/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods":                       {200, 2, ""},
		"/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods?labelSelector=app%3Da": {200, 1, ""},
		"/apis/metrics.k8s.io/v1beta1/namespaces/empty/pods":                    {200, 0, ""},
		"/apis/metrics.k8s.io/v1beta1/namespaces/bare/pods":                     {200, 1, ""},
		"/apis/metrics.k8s.io/v1beta1/namespaces/off/pods":                      {503, 0, ""},
		custom + "pods/*/hits":                                                  {200, 1, "5"},
		custom + "pods/*/none":                                                  {200, 0, ""},
		custom + "services/front/hits":                                          {200, 1, "7"},
		custom + "services/back/hits":                                           {404, 0, ""},
		custom + "metrics/hits":                                                 {200, 1, "9"},
		external + "queue":                                                      {200, 2, "20"},
		external + "queue?labelSelector=region%3Dwest":                          {200, 1, "30"},
		external + "none":                                                       {200, 0, ""},
		"/apis/custom.metrics.k8s.io/v1beta2":                                   {200, 0, ""},
		"/healthz":                                                              {404, 0, ""},
	} {
		t.Run(path, func(t *testing.T) {
			w := httptest.NewRecorder()
			m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
			var list struct {
				Items []struct {
					Value      string
					Containers []any
				}
			}
			if w.Code == http.StatusOK {
				if err := json.Unmarshal(w.Body.Bytes(), &list); err != nil {
					t.Fatal(err)
				}
			}
			if w.Code != want.code || len(list.Items) != want.items || want.value != "" && list.Items[0].Value != want.value {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
			if path == "/apis/metrics.k8s.io/v1beta1/namespaces/bare/pods" && len(list.Items[0].Containers) > 0 {
				t.Errorf("a container uses something: %s", w.Body)
			}
		})
	}
	m.Forget("ns")
	w := httptest.NewRecorder()
	m.ServeHTTP(w, httptest.NewRequest(http.MethodGet, external+"queue", nil))
	if w.Body.String() == "" || w.Code != http.StatusOK {
		t.Errorf("%d: %s", w.Code, w.Body)
	}
}
