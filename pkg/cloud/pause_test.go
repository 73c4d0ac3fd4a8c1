package cloud

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	cloudprovider "k8s.io/cloud-provider"
	fakecloud "k8s.io/cloud-provider/fake"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

// heard is a pause that counts who waits for its end.
type heard struct {
	*act.Limits
	waiting atomic.Int32
}

func (h *heard) OnChange(do func()) func() {
	stop := h.Limits.OnChange(do)
	h.waiting.Add(1)
	return func() { h.waiting.Add(-1); stop() }
}

// pausing pauses a controller, in all namespaces or in one.
func pausing(controller, namespace string) *heard {
	h := &heard{Limits: &act.Limits{}}
	h.Pause(func(c, n string) string {
		if c == controller && (namespace == "" || namespace == n) {
			return c + " is paused"
		}
		return ""
	})
	return h
}

// balanced is a Service that wants a load balancer.
func balanced(namespace, name string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}}
}

func TestAPausedLoopBeginsWhenItIsResumed(t *testing.T) {
	ranges, err := ClusterCIDRs("10.244.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	n := node("a", "1")
	n.Spec.PodCIDRs = []string{"10.244.1.0/24"}
	for method, tc := range map[string]struct {
		object runtime.Object
		loop   func(Options) (*Loop, error)
	}{
		"EnsureLoadBalancer": {balanced("default", "web"), func(o Options) (*Loop, error) { return ServiceLB(o, 1) }},
		"CreateRoute":        {n, func(o Options) (*Loop, error) { return NodeRoutes(o, ranges, time.Hour) }},
		"InstanceExists":     {node("b", "2"), func(o Options) (*Loop, error) { return NodeLifecycle(o, 20*time.Millisecond) }},
	} {
		t.Run(method, func(t *testing.T) {
			cloud := &fakecloud.Cloud{RouteMap: map[string]*fakecloud.Route{}, EnableInstancesV2: true, ExistsByProviderID: true}
			options, start := optionsFor(t, http.HandlerFunc(accepts), cloud, tc.object)
			loop, err := tc.loop(options)
			if err != nil {
				t.Fatal(err)
			}
			p := pausing("x", "")
			loop.Heed("x", p)
			start()
			stop, ended := run(t, loop)
			eventually(t, func() bool { return p.waiting.Load() > 0 })
			if made := loop.calls.show(Snapshot{}, ""); made.Calls != 0 {
				t.Errorf("while it is paused the cloud is asked %+v", made.Last)
			}
			p.Pause(nil)
			eventually(t, func() bool {
				for _, call := range loop.calls.show(Snapshot{}, "").Last {
					if call.Method == method {
						return true
					}
				}
				return false
			})
			stop()
			within(t, "the end", ended)
			eventually(t, func() bool { return !libraryWorks(t) })
		})
	}
}

func TestAPausedLoopEnds(t *testing.T) {
	options, start := optionsFor(t, http.HandlerFunc(accepts), &fakecloud.Cloud{}, balanced("default", "web"))
	loop, err := ServiceLB(options, 1)
	if err != nil {
		t.Fatal(err)
	}
	p := pausing("x", "")
	loop.Heed("x", p)
	start()
	stop, ended := run(t, loop)
	eventually(t, func() bool { return p.waiting.Load() > 0 })
	stop()
	within(t, "the end", ended)
	eventually(t, func() bool { return !libraryWorks(t) })
}

// TestAPausedNamespaceHoldsUpNoOther has one worker, whose first Services must not be touched.
func TestAPausedNamespaceHoldsUpNoOther(t *testing.T) {
	var services []runtime.Object
	for i, namespace := range []string{"bank", "bank", "bank", "shop"} {
		services = append(services, balanced(namespace, fmt.Sprint("web-", i)))
	}
	cloud := &slowBalancers{asked: make(chan string, len(services)), answer: make(chan struct{})}
	close(cloud.answer)
	options, start := optionsFor(t, http.HandlerFunc(accepts), cloud, services...)
	loop, err := ServiceLB(options, 1)
	if err != nil {
		t.Fatal(err)
	}
	loop.Heed("x", pausing("x", "bank"))
	start()
	stop, ended := run(t, loop)
	if first := <-cloud.asked; first != "web-3" || len(cloud.asked) != 0 {
		t.Errorf("the cloud is asked about %s and %d more", first, len(cloud.asked))
	}
	stop()
	within(t, "the end", ended)
	eventually(t, func() bool { return !libraryWorks(t) })
}

// What is under way when the pause begins changes nothing any more.
func TestAPauseInTheMiddleOfTheWork(t *testing.T) {
	g := newGate()
	l := &Loop{gate: g, calls: newCalls(g)}
	cloud := &fakecloud.Cloud{RouteMap: map[string]*fakecloud.Route{}}
	balancers, _ := provider{cloud, l.calls}.LoadBalancer()
	routes, _ := provider{cloud, l.calls}.Routes()
	v1, v2 := instances{cloud, l.calls}, instancesV2{cloud, l.calls}
	l.Heed("x", pausing("x", ""))
	service := balanced("default", "web")
	for method, do := range map[string]func(context.Context) error{
		"EnsureLoadBalancer": func(ctx context.Context) error {
			_, err := balancers.EnsureLoadBalancer(ctx, "c", service, nil)
			return err
		},
		"InstanceExists":            func(ctx context.Context) error { _, err := v2.InstanceExists(ctx, node("a", "1")); return err },
		"InstanceID":                func(ctx context.Context) error { _, err := v1.InstanceID(ctx, "a"); return err },
		"UpdateLoadBalancer":        func(ctx context.Context) error { return balancers.UpdateLoadBalancer(ctx, "c", service, nil) },
		"EnsureLoadBalancerDeleted": func(ctx context.Context) error { return balancers.EnsureLoadBalancerDeleted(ctx, "c", service) },
		"CreateRoute": func(ctx context.Context) error {
			return routes.CreateRoute(ctx, "c", "a", &cloudprovider.Route{TargetNode: "a"})
		},
		"DeleteRoute": func(ctx context.Context) error {
			return routes.DeleteRoute(ctx, "c", &cloudprovider.Route{TargetNode: "a"})
		},
	} {
		if err := do(t.Context()); consistency.WasWithheld(err) == nil {
			t.Errorf("%s ended with %v", method, err)
		}
	}
	if len(cloud.Calls) != 0 {
		t.Errorf("the cloud was asked %q", cloud.Calls)
	}
}

// By nodes as they were before a pause, some would be deleted that are ready since.
func TestATurnOfNodesBeginsAfterThePause(t *testing.T) {
	options, start := optionsFor(t, http.NotFoundHandler(), &fakecloud.Cloud{}, node("a", "1"))
	nodes := options.Informers.Core().V1().Nodes()
	synced := nodes.Informer().HasSynced
	start()
	eventually(t, synced)
	g, p := newGate(), pausing("x", "")
	(&Loop{gate: g}).Heed("x", p)
	listed := make(chan string, 1)
	go func() {
		got, err := informer{nodes, newPass(), g}.Lister().List(labels.Everything())
		listed <- fmt.Sprint(namesOf(got), " ", err)
	}()
	eventually(t, func() bool { return p.waiting.Load() > 0 })
	if err := nodes.Informer().GetStore().Add(node("b", "2")); err != nil {
		t.Fatal(err)
	}
	p.Pause(nil)
	select {
	case got := <-listed:
		if got != "a:1 b:2 <nil>" {
			t.Errorf("got %s", got)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("it waits still")
	}
}
