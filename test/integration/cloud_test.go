package integration

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/kube-kcm/kube-controller-manager/build/examples/memory-cloud/memory"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// cleanUpFinalizer is on a Service that has a load balancer.
const cleanUpFinalizer = "service.kubernetes.io/load-balancer-cleanup"

// clouds is a cluster in a cloud that exists in the memory of its controller manager.
type clouds struct {
	t       *testing.T
	client  kubernetes.Interface
	console string
}

// cloudConfig writes a configuration of the cloud with a console of its own.
func cloudConfig(t *testing.T) (file, console string) {
	t.Helper()
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	console = "127.0.0.1:" + strconv.Itoa(port)
	content, err := yaml.Marshal(memory.Config{Console: console, Instances: []string{"a", "b"}})
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "cloud.yaml")
	if err := os.WriteFile(file, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return file, "http://" + console
}

// console changes the cloud.
func (c clouds) change(method, path string) {
	c.t.Helper()
	request, err := http.NewRequestWithContext(c.t.Context(), method, c.console+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		c.t.Fatal(err)
	}
	if response.Body.Close(); response.StatusCode != http.StatusOK {
		c.t.Fatalf("%s %s: %s", method, path, response.Status)
	}
}

func (c clouds) state() (s memory.State) {
	c.t.Helper()
	response, err := http.Get(c.console)
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()
	if err := json.NewDecoder(response.Body).Decode(&s); err != nil {
		c.t.Fatal(err)
	}
	return s
}

// calls returns the calls of a method for an object.
func (c clouds) calls(method, of string) []memory.Call {
	c.t.Helper()
	return slices.DeleteFunc(c.state().Calls, func(call memory.Call) bool { return call.Method != method || call.Of != of })
}

// balancer returns the load balancer of a Service of the namespace default.
func (c clouds) balancer(service string) (memory.Balancer, bool) {
	c.t.Helper()
	for _, b := range c.state().Balancers {
		if b.Service == "default/"+service {
			return b, true
		}
	}
	return memory.Balancer{}, false
}

// until waits until holds returns nothing that is missing.
func (c clouds) until(holds func() string) {
	c.t.Helper()
	harness.Eventually(c.t, patient, func(context.Context) error {
		if missing := holds(); missing != "" {
			return fmt.Errorf("not yet: %s", missing)
		}
		return nil
	})
}

func (c clouds) addNode(name string, ready corev1.ConditionStatus, podCIDR string) {
	c.t.Helper()
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.NodeSpec{PodCIDR: podCIDR}}
	if podCIDR != "" {
		n.Spec.PodCIDRs = []string{podCIDR}
	}
	create(c.t, c.client.CoreV1().Nodes().Create, n)
	c.ready(name, ready)
}

// ready sets what the kubelet of a node says of itself.
func (c clouds) ready(name string, ready corev1.ConditionStatus) {
	c.t.Helper()
	now := time.Now().UTC().Format(time.RFC3339)
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q,"reason":"Test","lastHeartbeatTime":%q,"lastTransitionTime":%q}]}}`, ready, now, now)
	if _, err := c.client.CoreV1().Nodes().Patch(c.t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, "status"); err != nil {
		c.t.Fatal(err)
	}
}

func (c clouds) node(name string) *corev1.Node {
	c.t.Helper()
	n, err := c.client.CoreV1().Nodes().Get(c.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

func (c clouds) network(name string) string {
	c.t.Helper()
	if n := c.node(name); n != nil {
		for _, condition := range n.Status.Conditions {
			if condition.Type == corev1.NodeNetworkUnavailable {
				return string(condition.Status) + " " + condition.Reason + " " + condition.Message
			}
		}
	}
	return ""
}

func (c clouds) tainted(name string) bool {
	c.t.Helper()
	n := c.node(name)
	return n != nil && slices.ContainsFunc(n.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Key == "node.cloudprovider.kubernetes.io/shutdown" && taint.Effect == corev1.TaintEffectNoSchedule
	})
}

func (c clouds) addService(name string, with func(*corev1.Service)) {
	c.t.Helper()
	s := harness.Service(name)
	s.Spec.Type = corev1.ServiceTypeLoadBalancer
	if with != nil {
		with(s)
	}
	create(c.t, c.client.CoreV1().Services("default").Create, s)
}

// service returns nil when it is gone.
func (c clouds) service(name string) *corev1.Service {
	c.t.Helper()
	s, err := c.client.CoreV1().Services("default").Get(c.t.Context(), name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		c.t.Fatal(err)
	}
	return s
}

// address is what the status of a Service says of its load balancer.
func (c clouds) address(name string) string {
	c.t.Helper()
	if s := c.service(name); s != nil && len(s.Status.LoadBalancer.Ingress) == 1 {
		return s.Status.LoadBalancer.Ingress[0].IP
	}
	return ""
}

// events returns the reasons of the events on an object from a source, in the order in which they came.
func (c clouds) events(source, kind, name string) (reasons []string) {
	c.t.Helper()
	all, err := c.client.CoreV1().Events("").List(c.t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.kind=" + kind + ",involvedObject.name=" + name})
	if err != nil {
		c.t.Fatal(err)
	}
	slices.SortFunc(all.Items, func(a, b corev1.Event) int {
		first, _ := strconv.ParseUint(a.ResourceVersion, 10, 64)
		second, _ := strconv.ParseUint(b.ResourceVersion, 10, 64)
		return cmp.Compare(first, second)
	})
	for i := range all.Items {
		if e := &all.Items[i]; e.Source.Component == source {
			reasons = append(reasons, e.Type+" "+e.Reason)
		}
	}
	return reasons
}

func has(events []string, wanted ...string) string {
	for _, event := range wanted {
		if !slices.Contains(events, event) {
			return fmt.Sprintf("no event %s in %q", event, events)
		}
	}
	return ""
}

// TestCloud runs the example with its cloud in memory beside all other controllers.
func TestCloud(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	file, console := cloudConfig(t)
	mark := cp.Audit.Mark()
	c := clouds{t, clientOf(t, cp), console}
	c.addNode("a", corev1.ConditionTrue, "10.244.1.0/24")
	c.addNode("b", corev1.ConditionFalse, "")
	m := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltExample(t, "memory-cloud"), Args: []string{
		"--cloud-provider=" + memory.Name, "--cloud-config=" + file, "--cluster-cidr=10.244.0.0/16",
		"--route-reconciliation-period=1s", "--node-monitor-period=1s", "--concurrent-service-syncs=3"}})

	// What takes time begins first: a load balancer that comes at the third try, and one that
	// cannot be deleted at first.
	c.change(http.MethodPut, "/failures/EnsureLoadBalancer?of=default/flaky&times=2")
	c.change(http.MethodPut, "/failures/EnsureLoadBalancerDeleted?of=default/going&times=1")
	c.addService("flaky", nil)
	c.addService("going", nil)
	c.addService("other", func(s *corev1.Service) { class := "example.com/x"; s.Spec.LoadBalancerClass = &class })
	c.until(func() string { return cmp.Or(c.missingBalancer("going", "a", "b"), c.failedOnce("flaky")) })
	if err := c.client.CoreV1().Services("default").Delete(t.Context(), "going", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}

	c.until(func() string {
		if !slices.ContainsFunc(c.calls("EnsureLoadBalancerDeleted", "default/going"), func(call memory.Call) bool { return call.Failed }) {
			return "nobody tried to delete the load balancer"
		}
		return ""
	})
	if _, ok := c.balancer("going"); !ok || c.service("going") == nil {
		t.Error("the Service is gone before its load balancer")
	}

	c.followsNodes()
	c.losesItsBalancer()
	c.routes()
	c.instances()

	c.until(func() string {
		if c.service("going") != nil {
			return "the Service is still there"
		}
		return ""
	})
	if _, ok := c.balancer("going"); ok {
		t.Error("the load balancer outlived its Service")
	}
	c.retries("flaky")
	if s := c.service("other"); len(s.Finalizers) > 0 || len(c.calls("EnsureLoadBalancer", "default/other")) > 0 {
		t.Errorf("a Service of another class: %v", s.Finalizers)
	}
	c.shown(m)
	for _, event := range cp.Audit.Since(mark) {
		if event.Forbidden() {
			t.Errorf("forbidden: %s", event)
		}
	}
	if err := m.Stop(); err != nil || m.Process().ExitCode() != 0 {
		t.Errorf("stop: %v, exit code %d", err, m.Process().ExitCode())
	}
	if bad := m.Misbehaviour(0); bad != "" {
		t.Error(bad)
	}
	c.withoutRoutes(cp)
}

// missingBalancer returns what a Service lacks that has a load balancer with these nodes.
func (c clouds) missingBalancer(name string, nodes ...string) string {
	c.t.Helper()
	b, ok := c.balancer(name)
	switch s := c.service(name); {
	case !ok:
		return "no load balancer of " + name
	case !slices.Equal(b.Nodes, nodes):
		return fmt.Sprintf("nodes of %s are %q, not %q", name, b.Nodes, nodes)
	case !slices.Contains(s.Finalizers, cleanUpFinalizer):
		return "no finalizer on " + name
	case c.address(name) != b.Address:
		return fmt.Sprintf("address of %s is %q, not %q", name, c.address(name), b.Address)
	}
	return has(c.events("service-controller", "Service", name), "Normal EnsuringLoadBalancer", "Normal EnsuredLoadBalancer")
}

// failedOnce holds that the finalizer comes before the load balancer.
func (c clouds) failedOnce(name string) string {
	c.t.Helper()
	if missing := has(c.events("service-controller", "Service", name), "Normal EnsuringLoadBalancer", "Warning SyncLoadBalancerFailed"); missing != "" {
		return missing
	}
	if s := c.service(name); !slices.Contains(s.Finalizers, cleanUpFinalizer) || len(s.Status.LoadBalancer.Ingress) > 0 {
		c.t.Errorf("after a failure there are the finalizers %q, the status %v", s.Finalizers, s.Status)
	}
	return ""
}

// followsNodes excludes a node from load balancers. One that is not Ready stays in them.
func (c clouds) followsNodes() {
	c.addService("web", nil)
	c.until(func() string { return c.missingBalancer("web", "a", "b") })
	label := `{"metadata":{"labels":{"node.kubernetes.io/exclude-from-external-load-balancers":"true"}}}`
	if _, err := c.client.CoreV1().Nodes().Patch(c.t.Context(), "a", types.MergePatchType, []byte(label), metav1.PatchOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.until(func() string {
		return cmp.Or(c.missingBalancer("web", "b"), has(c.events("service-controller", "Service", "web"), "Normal UpdatedLoadBalancer"))
	})
	if updates := c.calls("UpdateLoadBalancer", "default/web"); len(updates) != 1 {
		c.t.Errorf("%d updates: %v", len(updates), updates)
	}
	if got := c.events("service-controller", "Service", "web"); strings.Join(got[:2], " ") != "Normal EnsuringLoadBalancer Normal EnsuredLoadBalancer" {
		c.t.Errorf("order of events: %q", got)
	}
}

// losesItsBalancer makes a Service one of another type.
func (c clouds) losesItsBalancer() {
	if _, err := c.client.CoreV1().Services("default").Patch(c.t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"type":"ClusterIP"}}`), metav1.PatchOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.until(func() string {
		s := c.service("web")
		if _, ok := c.balancer("web"); ok || len(s.Finalizers) > 0 || len(s.Status.LoadBalancer.Ingress) > 0 {
			return fmt.Sprintf("finalizers %q, status %v, load balancer %t", s.Finalizers, s.Status, ok)
		}
		return has(c.events("service-controller", "Service", "web"), "Normal DeletingLoadBalancer", "Normal DeletedLoadBalancer")
	})
}

// routes follow nodes, and the condition of a node says whether its routes are there.
func (c clouds) routes() {
	const made, failed = "False RouteCreated RouteController created a route", "True NoRouteCreated RouteController failed to create a route"
	network := func(node, want string) {
		c.t.Helper()
		c.until(func() string {
			if got := c.network(node); got != want {
				return fmt.Sprintf("NetworkUnavailable of %s is %q, not %q", node, got, want)
			}
			return ""
		})
	}
	routes := func() (targets []string) {
		for _, route := range c.state().Routes {
			targets = append(targets, string(route.TargetNode)+" "+route.DestinationCIDR)
		}
		slices.Sort(targets)
		return targets
	}
	network("a", made)
	c.change(http.MethodPut, "/failures/CreateRoute?of=c&times=1000")
	c.change(http.MethodPut, "/instances/c")
	c.addNode("c", corev1.ConditionTrue, "10.244.3.0/24")
	network("c", failed)
	c.until(func() string {
		return has(c.events("route_controller", "Node", "c"), "Warning FailedToCreateRoute")
	})
	c.change(http.MethodPut, "/failures/CreateRoute?of=c&times=0")
	network("c", made)
	if got := routes(); !slices.Equal(got, []string{"a 10.244.1.0/24", "c 10.244.3.0/24"}) {
		c.t.Errorf("routes %q", got)
	}
	if got := c.network("b"); got != "" {
		c.t.Errorf("a node without a pod CIDR: %s", got)
	}
	if err := c.client.CoreV1().Nodes().Delete(c.t.Context(), "c", metav1.DeleteOptions{}); err != nil {
		c.t.Fatal(err)
	}
	c.until(func() string {
		if got := routes(); !slices.Equal(got, []string{"a 10.244.1.0/24"}) {
			return fmt.Sprintf("routes %q", got)
		}
		return ""
	})
}

// instances that are gone take their nodes with them; those that are off keep work away.
func (c clouds) instances() {
	taint := func(want bool) {
		c.t.Helper()
		c.until(func() string {
			if c.tainted("b") != want {
				return fmt.Sprintf("tainted: %t", !want)
			}
			return ""
		})
	}
	c.change(http.MethodPut, "/instances/b?state=off")
	taint(true)
	c.change(http.MethodPut, "/instances/b")
	c.ready("b", corev1.ConditionTrue)
	taint(false)
	c.ready("b", corev1.ConditionFalse)
	c.addNode("d", corev1.ConditionFalse, "")
	c.until(func() string {
		if c.node("d") != nil {
			return "the node without an instance is still there"
		}
		return has(c.events("cloud-node-lifecycle-controller", "Node", "d"), "Normal DeletingNode")
	})
	c.change(http.MethodDelete, "/instances/b")
	c.until(func() string {
		if c.node("b") != nil {
			return "the node whose instance is gone is still there"
		}
		return ""
	})
	if c.node("a") == nil {
		c.t.Error("a Ready node is gone")
	}
}

// retries come after 5 and 10 seconds.
func (c clouds) retries(name string) {
	c.until(func() string {
		if c.address(name) == "" {
			return name + " has no address"
		}
		return ""
	})
	tries := c.calls("EnsureLoadBalancer", "default/"+name)
	if len(tries) != 3 || !tries[0].Failed || !tries[1].Failed || tries[2].Failed {
		c.t.Fatalf("tries: %v", tries)
	}
	for i, want := range []time.Duration{5 * time.Second, 10 * time.Second} {
		if got := tries[i+1].At.Sub(tries[i].At); got < want || got > want+5*time.Second {
			c.t.Errorf("try %d came after %s, want %s", i+2, got, want)
		}
	}
}

// shown is what the process says of the loops.
func (c clouds) shown(m *harness.Manager) {
	for path, parts := range map[string][]string{
		"/metrics": {
			`running_managed_controllers{manager="kube-controller-manager",name="service"} 1`,
			`running_managed_controllers{manager="kube-controller-manager",name="route"} 1`,
			`running_managed_controllers{manager="kube-controller-manager",name="cloud-node-lifecycle"} 1`,
			"service_controller_loadbalancer_sync_total", "route_controller_route_sync_total",
			`workqueue_adds_total{name="service"}`, `kcm_writes_total{controller="service-lb-controller",verb="change"}`,
			`kcm_writes_total{controller="cloud-node-lifecycle-controller",verb="delete"} 2`,
		},
		"/healthz?verbose": {"[+]service-lb-controller ok", "[+]node-route-controller ok", "[+]cloud-node-lifecycle-controller ok"},
		"/debug/controllers/service-lb-controller?key=default/flaky": {`"provider": "memory"`, "EnsureLoadBalancer", "the cloud is out of order"},
	} {
		_, body, err := m.GetAsAdmin(path)
		if err != nil {
			c.t.Error(err)
		}
		for _, part := range parts {
			if !strings.Contains(body, part) {
				c.t.Errorf("%s has no %s", path, part)
			}
		}
	}
}

// withoutRoutes starts again on another cloud, whose routes are left alone.
func (c clouds) withoutRoutes(cp *harness.ControlPlane) {
	file, console := cloudConfig(c.t)
	c.console = console
	m := cp.StartManager(c.t, harness.ManagerOptions{Binary: harness.BuiltExample(c.t, "memory-cloud"), Args: []string{
		"--cloud-provider=" + memory.Name, "--cloud-config=" + file, "--configure-cloud-routes=false", "--node-monitor-period=1s"}})
	c.until(func() string { return c.missingBalancer("flaky") })
	c.addNode("e", corev1.ConditionFalse, "10.244.5.0/24")
	c.until(func() string {
		if c.node("e") != nil {
			return "the node without an instance is still there"
		}
		return ""
	})
	if _, body, err := m.GetAsAdmin("/debug/controllers/node-route-controller"); err != nil || !strings.Contains(body, "--configure-cloud-routes is false") {
		c.t.Errorf("%v %s", err, body)
	}
	if calls := c.calls("ListRoutes", "kubernetes"); len(calls) > 0 {
		c.t.Errorf("asked for routes: %v", calls)
	}
}
