package app

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
)

// silent says that there is an API for custom metrics, and answers nothing else. It keeps
// how long each request would wait.
type silent struct {
	mu    sync.Mutex
	waits map[string]time.Duration
}

func (s *silent) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waits[r.URL.Path] = time.Hour
	if end, is := r.Context().Deadline(); is {
		s.waits[r.URL.Path] = time.Until(end)
	}
	body := map[string]string{
		"/api":  `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis": `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"custom.metrics.k8s.io","versions":[{"groupVersion":"custom.metrics.k8s.io/v1beta2","version":"v1beta2"}]}]}`,
	}[r.URL.Path]
	if body == "" {
		return nil, http.ErrHandlerTimeout
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
}

func TestAMetricsAPIIsWaitedForNoLongerThanHalfAMinute(t *testing.T) {
	served := fake.NewClientset()
	served.Resources = []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "pods", Kind: "Pod", Namespaced: true}}}}
	cc := testContext(t)
	cc.row = row(names.HorizontalPodAutoscalerController)
	cc.RESTMapper = restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(served.Discovery()))
	api := &silent{waits: map[string]time.Duration{}}
	r, err := autoscalerReaderOf(t.Context(), cc, &rest.Config{Host: "http://api.example", Transport: api})
	if err != nil {
		t.Fatal(err)
	}
	_, resources := r.PodMetrics(t.Context(), "ns", labels.Everything())
	_, external := r.ExternalMetrics("ns").List("queue", labels.Everything())
	_, custom := r.CustomMetrics("ns").GetForObject(schema.GroupKind{Kind: "Pod"}, "p", "load", labels.Everything())
	if errs := []error{resources, external, custom}; slices.Contains(errs, nil) {
		t.Fatalf("a silent API has answered: %v", errs)
	}
	for _, path := range []string{
		"/apis", "/apis/metrics.k8s.io/v1beta1/namespaces/ns/pods", "/apis/external.metrics.k8s.io/v1beta1/namespaces/ns/queue",
		"/apis/custom.metrics.k8s.io/v1beta2/namespaces/ns/pods/p/load",
	} {
		if wait := api.waits[path]; wait <= 0 || wait > 30*time.Second {
			t.Errorf("a request for %s waits %v; of %v", path, wait, api.waits)
		}
	}
}
