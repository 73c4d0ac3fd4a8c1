package cloud

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	cloudprovider "k8s.io/cloud-provider"
	fakecloud "k8s.io/cloud-provider/fake"
	"k8s.io/component-base/metrics/prometheus/controllers"
)

func node(name string, uid types.UID) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uid}}
}

func namesOf(nodes []*corev1.Node) string {
	var names []string
	for _, n := range nodes {
		names = append(names, n.Name+":"+string(n.UID))
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestANodeIsDeletedOnceByItsUID(t *testing.T) {
	p := newPass()
	look := func(nodes ...*corev1.Node) string { return namesOf(p.begin(nodes)) }
	if got := look(node("a", "1"), node("b", "2")); got != "a:1 b:2" {
		t.Errorf("first turn: %s", got)
	}
	if uid, ok := p.uid("a"); !ok || uid != "1" {
		t.Errorf("a is %s", uid)
	}
	p.gone("1")
	for range 2 {
		if got := look(node("a", "1"), node("b", "2")); got != "b:2" {
			t.Errorf("the cache still has what was deleted: %s", got)
		}
	}
	if _, ok := p.uid("a"); ok {
		t.Error("a node that was left out may be deleted")
	}
	if got := look(node("a", "3"), node("b", "2")); got != "a:3 b:2" {
		t.Errorf("another node of that name: %s", got)
	}
	if len(p.deleted) != 0 {
		t.Errorf("remembers what is gone: %v", p.deleted)
	}
}

// deletions is an API server that answers deletions of nodes, and notes them.
type deletions struct {
	mu    sync.Mutex
	asked []string
	code  int
}

func (d *deletions) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if req.Method != http.MethodDelete {
		accepts(w, req)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	var options metav1.DeleteOptions
	_ = json.NewDecoder(req.Body).Decode(&options)
	uid := types.UID("none")
	if options.Preconditions != nil && options.Preconditions.UID != nil {
		uid = *options.Preconditions.UID
	}
	d.asked = append(d.asked, req.URL.Path+" "+string(uid))
	w.WriteHeader(d.code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Code: int32(d.code)})
}

func (d *deletions) seen() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.asked...)
}

// accepts is an API server that accepts all that is written.
func accepts(w http.ResponseWriter, req *http.Request) {
	kind := "Event"
	for part, of := range map[string]string{"/nodes/": "Node", "/services/": "Service"} {
		if strings.Contains(req.URL.Path, part) {
			kind = of
		}
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(metav1.TypeMeta{Kind: kind, APIVersion: "v1"})
}

// oneInstance is a cloud that has the instance of b, and no other.
type oneInstance struct{ fakecloud.Cloud }

func (c *oneInstance) InstancesV2() (cloudprovider.InstancesV2, bool) { return c, true }

func (c *oneInstance) InstanceExists(_ context.Context, node *corev1.Node) (bool, error) {
	return node.Name == "b", nil
}

// optionsFor are those of a loop whose caches have the nodes, and whose writes go to the API server.
func optionsFor(t *testing.T, api http.Handler, cloud cloudprovider.Interface, objects ...runtime.Object) (Options, func()) {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	client := fake.NewClientset()
	for _, o := range objects {
		if err := client.Tracker().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	factory := informers.NewSharedInformerFactory(client, 0)
	return Options{
		Name: "test", Cloud: cloud, Informers: factory, ClusterName: "kubernetes",
		Config:  &rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}},
		Metrics: controllers.NewControllerManagerMetrics("test"),
	}, func() { factory.StartWithContext(t.Context()) }
}

// TestNodesOfInstancesThatAreGone runs the loop on a cache that never shows what was deleted.
func TestNodesOfInstancesThatAreGone(t *testing.T) {
	for name, tc := range map[string]struct {
		code  int
		least int // deletions that are asked for
	}{
		"what was deleted is not deleted again": {http.StatusOK, 1},
		"a refusal is asked again":              {http.StatusForbidden, 3},
		"another node of that name stays":       {http.StatusConflict, 3},
	} {
		t.Run(name, func(t *testing.T) {
			api := &deletions{code: tc.code}
			options, start := optionsFor(t, api, &oneInstance{}, node("a", "1"), node("b", "2"))
			var wrote sync.Map
			options.Wrote = func(verb string, err error) { wrote.Store(verb, err != nil) }
			loop, err := NodeLifecycle(options, 10*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			start()
			stop, ended := run(t, loop)
			eventually(t, func() bool { return len(api.seen()) >= tc.least && loop.Started() })
			turns := func() int { return len(loop.calls.show(Snapshot{}, "b").Last) / 2 }
			begun := turns()
			eventually(t, func() bool { return turns() > begun+3 })
			stop()
			within(t, "the end", ended)
			got := api.seen()
			for _, request := range got {
				if request != "/api/v1/nodes/a 1" {
					t.Errorf("asked for %s", request)
				}
			}
			if tc.least == 1 && len(got) != 1 {
				t.Errorf("asked for %d deletions", len(got))
			}
			if failed, ok := wrote.Load("delete"); !ok || failed != (tc.code != http.StatusOK) {
				t.Errorf("counted: %v %v", failed, ok)
			}
		})
	}
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	end := time.After(deadline)
	for tick := time.Tick(2 * time.Millisecond); !holds(); {
		select {
		case <-tick:
		case <-end:
			t.Fatal("not in time")
		}
	}
}

func TestALoopThatTheProviderDoesNotSupportIsNotMade(t *testing.T) {
	options, _ := optionsFor(t, http.NotFoundHandler(), &fakecloud.Cloud{DisableInstances: true, DisableLoadBalancers: true, DisableRoutes: true})
	_, balancers := ServiceLB(options, 1)
	_, routes := NodeRoutes(options, nil, time.Second)
	_, instances := NodeLifecycle(options, time.Second)
	for name, err := range map[string]error{"load balancers": balancers, "routes": routes, "instances": instances} {
		if !errors.Is(err, ErrNotSupported) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	options.Cloud = &fakecloud.Cloud{}
	if _, err := NodeRoutes(options, nil, time.Second); err == nil || !strings.Contains(err.Error(), "--cluster-cidr") {
		t.Errorf("routes without ranges: %v", err)
	}
}

func TestListsAreOfTheCache(t *testing.T) {
	options, start := optionsFor(t, http.NotFoundHandler(), &fakecloud.Cloud{}, node("a", "1"))
	nodes := options.Informers.Core().V1().Nodes()
	synced := nodes.Informer().HasSynced
	start()
	eventually(t, synced)
	got, err := informer{nodes, newPass(), newGate()}.Lister().List(labels.Everything())
	if err != nil || cmp.Diff("a:1", namesOf(got)) != "" {
		t.Errorf("%s %v", namesOf(got), err)
	}
}

func TestWhichWritesAreOfEvents(t *testing.T) {
	for path, want := range map[string]bool{
		"/api/v1/namespaces/shop/events": true, "/api/v1/namespaces/events/events/a.1": true, "/apis/events.k8s.io/v1/namespaces/shop/events/a.1": true,
		"/api/v1/namespaces/events/services/web/status": false, "/api/v1/nodes/events-1": false, "/api/v1/namespaces/shop/services/events/status": false, "/api": false,
		"/apis/coordination.k8s.io/v1/namespaces/events/leases/a": false, "/k8s/c-1/api/v1/namespaces/shop/events": true,
	} {
		if aboutEvents(path) != want {
			t.Errorf("%s is about events: %t", path, !want)
		}
	}
}
