package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/options"
	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/debug"
)

// emptyCluster serves every kind of Kubernetes, without an object in it but the
// service accounts that are asked for, and refuses some requests.
type emptyCluster struct {
	*httptest.Server
	// kinds are the kinds of resources, by the path of their lists.
	kinds map[string]metav1.GroupVersionKind
	// resources are what discovery shows, by group and version.
	resources map[string][]metav1.APIResource

	mu sync.Mutex
	// refuse decides which requests are answered with an error.
	refuse func(req *http.Request) int
}

func newEmptyCluster(t *testing.T, refuse func(*http.Request) int) *emptyCluster {
	t.Helper()
	c := &emptyCluster{kinds: map[string]metav1.GroupVersionKind{}, resources: map[string][]metav1.APIResource{}, refuse: refuse}
	for gvk, goType := range scheme.Scheme.AllKnownTypes() {
		if _, listed := goType.FieldByName("ObjectMeta"); !listed || gvk.Version == "__internal" {
			continue
		}
		plural, _ := meta.UnsafeGuessKindToResource(gvk)
		path := "/apis/" + gvk.GroupVersion().String()
		if gvk.Group == "" {
			path = "/api/" + gvk.Version
		}
		c.kinds[path+"/"+plural.Resource] = metav1.GroupVersionKind(gvk)
		c.resources[path] = append(c.resources[path], metav1.APIResource{Name: plural.Resource, Kind: gvk.Kind, Namespaced: true,
			Verbs: metav1.Verbs{"create", "delete", "get", "list", "patch", "update", "watch"}})
	}
	c.Server = httptest.NewServer(c)
	t.Cleanup(func() { c.CloseClientConnections(); c.Close() })
	return c
}

func (c *emptyCluster) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	c.mu.Lock()
	code := c.refuse(req)
	c.mu.Unlock()
	if code != 0 {
		answer(w, code, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
			Code: int32(code), Reason: reasons[code], Message: "not now"})
		return
	}
	switch {
	case req.URL.Path == "/healthz":
		_, _ = w.Write([]byte("ok"))
	case req.URL.Path == "/api":
		answer(w, 200, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case req.URL.Path == "/apis":
		answer(w, 200, c.groups())
	case c.resources[req.URL.Path] != nil:
		group := strings.TrimPrefix(strings.TrimPrefix(req.URL.Path, "/apis/"), "/api/")
		answer(w, 200, metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: group, APIResources: c.resources[req.URL.Path]})
	case strings.HasSuffix(req.URL.Path, "/token"):
		answer(w, 201, authenticationv1.TokenRequest{
			TypeMeta: metav1.TypeMeta{Kind: "TokenRequest", APIVersion: "authentication.k8s.io/v1"},
			Spec:     authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64)},
			Status:   authenticationv1.TokenRequestStatus{Token: "token", ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour))},
		})
	case strings.Contains(req.URL.Path, "/serviceaccounts/"):
		answer(w, 200, corev1.ServiceAccount{TypeMeta: metav1.TypeMeta{Kind: "ServiceAccount", APIVersion: "v1"},
			ObjectMeta: metav1.ObjectMeta{Name: "any", Namespace: "kube-system", UID: "1", ResourceVersion: "1"}})
	case req.URL.Query().Has("sendInitialEvents"):
		answer(w, 422, metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: 422, Reason: metav1.StatusReasonInvalid})
	case req.URL.Query().Has("watch"):
		w.WriteHeader(200)
		w.(http.Flusher).Flush()
		<-req.Context().Done()
	default:
		kind := c.kinds[strings.Replace(req.URL.Path, "/namespaces/kube-system/", "/", 1)]
		answer(w, 200, map[string]any{"kind": kind.Kind + "List", "apiVersion": strings.TrimPrefix(kind.Group+"/"+kind.Version, "/"),
			"metadata": map[string]any{"resourceVersion": "7"}, "items": []any{}})
	}
}

var reasons = map[int]metav1.StatusReason{
	409: metav1.StatusReasonConflict, 410: metav1.StatusReasonExpired, 429: metav1.StatusReasonTooManyRequests, 500: metav1.StatusReasonInternalError,
	503: metav1.StatusReasonServiceUnavailable, 403: metav1.StatusReasonForbidden,
}

func answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}

func (c *emptyCluster) groups() metav1.APIGroupList {
	list := metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}}
	for path := range c.resources {
		version, found := strings.CutPrefix(path, "/apis/")
		if !found {
			continue
		}
		group, short, _ := strings.Cut(version, "/")
		v := metav1.GroupVersionForDiscovery{GroupVersion: version, Version: short}
		list.Groups = append(list.Groups, metav1.APIGroup{Name: group, Versions: []metav1.GroupVersionForDiscovery{v}, PreferredVersion: v})
	}
	return list
}

// leader returns a process that runs all controllers on the cluster, each with
// the credentials of its own service account.
func (c *emptyCluster) leader(t *testing.T) *process {
	t.Helper()
	completed := testConfig(t)
	completed.ComponentConfig = *options.DefaultComponentConfig()
	completed.ComponentConfig.Generic.Controllers = append(names.DisabledByDefault(), "*")
	gates := completed.ComponentGlobalsRegistry.FeatureGateFor(compatibility.DefaultKubeComponent).(featuregate.MutableFeatureGate)
	if err := gates.Set("PodCertificateRequest=true,GenericWorkload=true,StorageVersionMigrator=true,StorageVersionAPI=true"); err != nil {
		t.Fatal(err)
	}
	completed.ComponentConfig.KubeCloudShared.UseServiceAccountCredentials = true
	completed.Kubeconfig = &rest.Config{Host: c.URL, QPS: -1, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	completed.Client = kubernetes.NewForConfigOrDie(completed.Kubeconfig)
	return testProcess(t, completed)
}

// start leads until all controllers have been started, and returns what became
// of each.
func start(ctx context.Context, t *testing.T, p *process) ([]debug.Controller, error) {
	t.Helper()
	ctx, stop := context.WithTimeout(ctx, deadline)
	defer stop()
	all := everything()
	all.name = strings.ReplaceAll(t.Name(), "/", "-") // names of caches are unique in a process
	begun := make(chan struct{})
	all.started = func() { close(begun) }
	led := make(chan error, 1)
	go func() { led <- p.lead(ctx, all, nil) }()
	select {
	case <-begun:
	case err := <-led:
		if err == nil {
			err = errors.New("not started in time")
		}
		return nil, err
	}
	states := p.debug.List()
	stop()
	return states, <-led
}

// TestAStartOutlastsRefusals starts all controllers while a tenth of all requests
// is refused: each one starts that starts without refusals.
func TestAStartOutlastsRefusals(t *testing.T) {
	want, err := start(t.Context(), t, newEmptyCluster(t, func(*http.Request) int { return 0 }).leader(t))
	if err != nil {
		t.Fatal(err)
	}
	running := 0
	for _, c := range want {
		if c.State == debug.Started {
			running++
		}
	}
	if running < 33 {
		t.Fatalf("only %d controllers run without refusals: %v", running, want)
	}
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			dice := rand.New(rand.NewPCG(seed, 1))
			cluster := newEmptyCluster(t, func(*http.Request) int {
				if dice.IntN(10) > 0 {
					return 0
				}
				return []int{409, 429, 500, 503}[dice.IntN(4)]
			})
			got, err := start(t.Context(), t, cluster.leader(t))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("controllers (-without refusals +with):\n%s", diff)
			}
		})
	}
}

func TestAStartEndsWithARefusalForGood(t *testing.T) {
	for name, denied := range map[string]string{"discovery": "/api", "service account": "/serviceaccounts/job-controller"} {
		t.Run(name, func(t *testing.T) {
			cluster := newEmptyCluster(t, func(req *http.Request) int {
				if strings.HasSuffix(req.URL.Path, denied) || denied == "/api" && req.URL.Path == "/apis" {
					return http.StatusForbidden
				}
				return 0
			})
			if _, err := start(t.Context(), t, cluster.leader(t)); !apierrors.IsForbidden(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAStopEndsTheTriesOfAStart(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	asked := 0
	cluster := newEmptyCluster(t, func(req *http.Request) int {
		if !strings.HasSuffix(req.URL.Path, "/serviceaccounts/job-controller") {
			return 0
		}
		if asked++; asked == 3 {
			stop()
		}
		return http.StatusServiceUnavailable
	})
	if _, err := start(ctx, t, cluster.leader(t)); err == nil || err.Error() != "not started in time" {
		t.Errorf("got %v, want a clean end", err)
	}
}
