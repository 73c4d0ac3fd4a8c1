package cloud

import (
	"context"
	"fmt"
	"net/http"
	"runtime/pprof"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cloudprovider "k8s.io/cloud-provider"
	fakecloud "k8s.io/cloud-provider/fake"
	featuregatetesting "k8s.io/component-base/featuregate/testing"
	cloudfeatures "k8s.io/controller-manager/pkg/features"
)

// libraryWorks reports whether anything of the library still runs.
func libraryWorks(t *testing.T) bool {
	t.Helper()
	var stacks strings.Builder
	if err := pprof.Lookup("goroutine").WriteTo(&stacks, 1); err != nil {
		t.Fatal(err)
	}
	return strings.Contains(stacks.String(), "k8s.io/cloud-provider/controllers/")
}

// slowBalancers is a cloud whose load balancers come when they are let.
type slowBalancers struct {
	fakecloud.Cloud
	asked  chan string
	answer chan struct{}
}

func (c *slowBalancers) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return c, true }

func (c *slowBalancers) EnsureLoadBalancer(_ context.Context, _ string, s *corev1.Service, _ []*corev1.Node) (*corev1.LoadBalancerStatus, error) {
	c.asked <- s.Name
	<-c.answer
	return &corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: "192.0.2.1"}}}, nil
}

// TestALoopEndsWithTheServiceThatItIsOn stops the loop while many Services are queued, which
// the library would still work on.
func TestALoopEndsWithTheServiceThatItIsOn(t *testing.T) {
	const queued = 20
	cloud := &slowBalancers{asked: make(chan string, queued), answer: make(chan struct{})}
	var services []runtime.Object
	for i := range queued {
		services = append(services, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprint("web-", i)},
			Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer}})
	}
	statuses := make(chan string, 2*queued)
	api := http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, name, ok := strings.Cut(req.URL.Path, "/services/"); ok {
			statuses <- strings.TrimSuffix(name, "/status")
		}
		accepts(w, req)
	})
	options, start := optionsFor(t, api, cloud, services...)
	loop, err := ServiceLB(options, 1)
	if err != nil {
		t.Fatal(err)
	}
	loop.LimitDrain(deadline)
	start()
	stop, ended := run(t, loop)
	first := <-cloud.asked
	stop()
	close(cloud.answer)
	within(t, "the end", ended)
	eventually(t, func() bool { return !libraryWorks(t) })
	if more := len(cloud.asked); more != 0 {
		t.Errorf("began with %d more Services after the stop", more)
	}
	close(statuses)
	var patched []string
	for name := range statuses {
		patched = append(patched, name)
	}
	if want := []string{first, first}; !slices.Equal(patched, want) {
		t.Errorf("patched %q, want the finalizer and the status of what was worked on, %q", patched, want)
	}
}

// TestRoutesOfNodes runs the loop by its period, and by the changes of nodes.
func TestRoutesOfNodes(t *testing.T) {
	ranges, err := ClusterCIDRs("10.244.0.0/16")
	if err != nil {
		t.Fatal(err)
	}
	for name, watch := range map[string]bool{"by the period": false, "by watching": true} {
		t.Run(name, func(t *testing.T) {
			featuregatetesting.SetFeatureGateDuringTest(t, utilfeature.DefaultFeatureGate, cloudfeatures.CloudControllerManagerWatchBasedRoutesReconciliation, watch)
			cloud := &fakecloud.Cloud{RouteMap: map[string]*fakecloud.Route{}}
			n := node("a", "1")
			n.Spec.PodCIDRs = []string{"10.244.1.0/24"}
			options, start := optionsFor(t, http.HandlerFunc(accepts), cloud, n)
			loop, err := NodeRoutes(options, ranges, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			start()
			stop, ended := run(t, loop)
			eventually(t, func() bool {
				return slices.ContainsFunc(loop.calls.show(Snapshot{}, "a").Last, func(c Call) bool { return c.Method == "CreateRoute" && c.Error == "" })
			})
			stop()
			within(t, "the end", ended)
			eventually(t, func() bool { return !libraryWorks(t) })
		})
	}
}

// TestInstancesByTheOlderInterface has a provider that knows instances by their ID only.
func TestInstancesByTheOlderInterface(t *testing.T) {
	for name, tc := range map[string]struct {
		cloud *fakecloud.Cloud
		asks  string
		goes  bool
	}{
		"an instance that is gone": {&fakecloud.Cloud{ExtID: map[types.NodeName]string{"a": "i-1"}}, "InstanceID a, InstanceExistsByProviderID fake://i-1", true},
		"a node that the cloud does not know": {&fakecloud.Cloud{ExtIDErr: map[types.NodeName]error{"a": cloudprovider.InstanceNotFound}},
			"InstanceID a", true},
		"an instance that runs": {&fakecloud.Cloud{ExtID: map[types.NodeName]string{"a": "i-1"}, ExistsByProviderID: true},
			"InstanceID a, InstanceExistsByProviderID fake://i-1, InstanceID a, InstanceShutdownByProviderID fake://i-1", false},
	} {
		t.Run(name, func(t *testing.T) {
			api := &deletions{code: http.StatusOK}
			options, start := optionsFor(t, api, tc.cloud, node("a", "1"))
			loop, err := NodeLifecycle(options, time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			start()
			stop, ended := run(t, loop)
			asked := func() string {
				var calls []string
				for _, c := range slices.Backward(loop.calls.show(Snapshot{}, "").Last) {
					calls = append(calls, c.Method+" "+c.Of)
				}
				return strings.Join(calls, ", ")
			}
			eventually(t, func() bool { return asked() == tc.asks && (len(api.seen()) == 1) == tc.goes })
			stop()
			within(t, "the end", ended)
		})
	}
}
