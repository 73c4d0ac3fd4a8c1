package endpointslice

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var (
	web            = types.NamespacedName{Namespace: "shop", Name: "web"}
	endpointSlices = discoveryv1.Resource("endpointslices")
)

// shell is a controller whose caches the test fills by hand. Slices it writes
// get the next version and are cached when the test says so.
type shell struct {
	*Controller
	client  *fake.Clientset
	factory informers.SharedInformerFactory
	events  *record.FakeRecorder
	clock   *testclock.FakeClock
	limits  act.Limits
	version int
	written []*discoveryv1.EndpointSlice
	deleted []clienttesting.DeleteActionImpl
}

func newShell(t testing.TB, o Options, cached ...runtime.Object) *shell {
	t.Helper()
	if o.MaxEndpointsPerSlice == 0 {
		o.MaxEndpointsPerSlice = 100
	}
	client := fake.NewClientset()
	s := &shell{client: client, factory: informers.NewSharedInformerFactory(client, 0), events: record.NewFakeRecorder(1000), version: 100,
		clock: testclock.NewFakeClock(time.Unix(9, 0))} // no reconcile takes any time
	hand := fixture.Hand(client, s.events)
	hand.Clock, hand.Limits = s.clock, &s.limits
	client.PrependReactor("*", "endpointslices", s.serve)
	core := s.factory.Core().V1()
	var err error
	s.Controller, err = New(core.Services(), core.Pods(), core.Nodes(), s.factory.Discovery().V1().EndpointSlices(), hand, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range cached {
		s.cache(t, object)
	}
	return s
}

func (s *shell) serve(action clienttesting.Action) (bool, runtime.Object, error) {
	switch a := action.(type) {
	case clienttesting.CreateAction:
		slice := a.GetObject().(*discoveryv1.EndpointSlice).DeepCopy()
		s.version++
		slice.ResourceVersion = fmt.Sprint(s.version)
		slice.Generation++
		if slice.Name == "" {
			slice.Name = fmt.Sprint(slice.GenerateName, s.version)
		}
		if slice.UID == "" {
			slice.UID = types.UID(slice.Name)
		}
		s.written = append(s.written, slice)
		return true, slice, nil
	case clienttesting.DeleteActionImpl:
		s.deleted = append(s.deleted, a)
	}
	return true, nil, nil
}

func (s *shell) cache(t testing.TB, object runtime.Object) {
	t.Helper()
	var err error
	switch o := object.(type) {
	case *corev1.Service:
		err = s.factory.Core().V1().Services().Informer().GetIndexer().Add(o)
	case *corev1.Pod:
		err = s.factory.Core().V1().Pods().Informer().GetIndexer().Add(o)
	case *corev1.Node:
		err = s.factory.Core().V1().Nodes().Informer().GetIndexer().Add(o)
	case *discoveryv1.EndpointSlice:
		err = s.factory.Discovery().V1().EndpointSlices().Informer().GetIndexer().Add(o)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// settle syncs the Service and puts what was written into the cache.
func (s *shell) settle(t testing.TB) []*discoveryv1.EndpointSlice {
	t.Helper()
	if err := s.sync(context.Background(), web).Err(); err != nil {
		t.Fatal(err)
	}
	written := s.written
	for _, slice := range written {
		s.cache(t, slice)
	}
	s.written = nil
	return written
}

func (s *shell) said() []string {
	var all []string
	for len(s.events.Events) > 0 {
		all = append(all, <-s.events.Events)
	}
	return all
}

func service(change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "s1", Labels: map[string]string{"team": "x"}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"}, ClusterIP: "10.96.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)},
				{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP, TargetPort: intstr.FromInt32(53)}},
		},
	}
	for _, f := range change {
		f(s)
	}
	return s
}

func auto(s *corev1.Service) {
	s.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"}
}
func withoutSelector(s *corev1.Service) { s.Spec.Selector = nil }
func externalName(s *corev1.Service)    { s.Spec.Type = corev1.ServiceTypeExternalName }
func ending(s *corev1.Service)          { s.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)} }
func recreated(s *corev1.Service)       { s.UID = "s2" }
func dualStack(s *corev1.Service) {
	s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
}
func preferSameNode(s *corev1.Service) {
	value := corev1.ServiceTrafficDistributionPreferSameNode
	s.Spec.TrafficDistribution = &value
}

func pod(i int, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	ip := fmt.Sprintf("10.0.%d.%d", i/256, i%256)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: fmt.Sprintf("p%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)), Labels: map[string]string{"app": "web"}}}
	p.Spec.NodeName = node
	p.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func unready(p *corev1.Pod) { p.Status.Conditions = nil }

func node(name, zone string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{corev1.LabelTopologyZone: zone}}}
	n.Status.Allocatable = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")}
	n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	for _, f := range change {
		f(n)
	}
	return n
}

func notReady(n *corev1.Node)     { n.Status.Conditions[0].Status = corev1.ConditionFalse }
func bigger(n *corev1.Node)       { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("8") }
func controlPlane(n *corev1.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" }
func moved(n *corev1.Node)        { n.Labels[corev1.LabelTopologyZone] = "z" }
func heartbeat(n *corev1.Node) {
	n.Status.Conditions[0].LastHeartbeatTime = metav1.Time{Time: time.Unix(9, 0)}
}

func TestASettledServiceIsNotWrittenAgain(t *testing.T) {
	s := newShell(t, Options{}, service(dualStack), node("n", "a"), pod(1, "n"), pod(2, "n"))
	if written := s.settle(t); len(written) != 2 {
		t.Fatalf("wrote %d slices, want one for each family", len(written))
	}
	if again := s.settle(t); len(again) != 0 || len(s.deleted) != 0 {
		t.Errorf("wrote %d and deleted %d slices with nothing changed", len(again), len(s.deleted))
	}
}

func TestOthersServicesAreLeftAlone(t *testing.T) {
	slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{
		discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: ManagedBy}}}
	for name, change := range map[string]func(*corev1.Service){"without a selector": withoutSelector, "with an external name": externalName} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, Options{}, service(change), slice, pod(1, "n"))
			if s.settle(t); len(s.client.Actions()) != 0 {
				t.Errorf("did %v", s.client.Actions())
			}
		})
	}
	t.Run("slices of another manager", func(t *testing.T) {
		other := slice.DeepCopy()
		other.Labels[discoveryv1.LabelManagedBy] = "someone"
		s := newShell(t, Options{}, service(), other)
		if written := s.settle(t); len(written) != 1 || len(s.deleted) != 0 {
			t.Errorf("wrote %d, deleted %d", len(written), len(s.deleted))
		}
	})
}

func TestAMissingNodeIsToldAndRetried(t *testing.T) {
	s := newShell(t, Options{}, service(), node("n", "a"), pod(1, "n"), pod(2, "gone"))
	err := s.sync(context.Background(), web).Err()
	if err == nil || len(s.written) != 1 || len(s.written[0].Endpoints) != 1 {
		t.Fatalf("error %v, wrote %v", err, s.written)
	}
	want := "Warning FailedToUpdateEndpointSlices Error updating Endpoint Slices for Service shop/web: skipping Pod p2 for Service shop/web: Node gone Not Found"
	if said := s.said(); len(said) != 1 || said[0] != want {
		t.Errorf("said %q", said)
	}
}

func TestRefusedWrites(t *testing.T) {
	forbidden := apierrors.NewForbidden(endpointSlices, "web-1", errors.New("denied"))
	closing := apierrors.NewForbidden(endpointSlices, "web-1", errors.New("the namespace is being terminated"))
	closing.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	for name, tc := range map[string]struct {
		verb   string
		err    error
		failed bool
	}{
		"a forbidden create is told and retried":                {"create", forbidden, true},
		"a create in a namespace that is going away is dropped": {"create", closing, false},
		"a conflict is told and retried":                        {"update", apierrors.NewConflict(endpointSlices, "web-1", errors.New("changed")), true},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, Options{}, service(), node("n", "a"))
			if tc.verb == "update" {
				s.settle(t)
			}
			s.cache(t, pod(1, "n"))
			s.client.PrependReactor(tc.verb, "endpointslices", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			err := s.sync(context.Background(), web).Err()
			said := strings.Join(s.said(), "\n")
			if (err != nil) != tc.failed || strings.Contains(said, "FailedToUpdateEndpointSlices") != tc.failed {
				t.Errorf("error %v, said %q", err, said)
			}
		})
	}
}

func TestASliceOfAnEarlierServiceIsDeletedByUID(t *testing.T) {
	s := newShell(t, Options{}, service(), node("n", "a"), pod(1, "n"))
	old := s.settle(t)[0]
	s.cache(t, service(recreated))
	if written := s.settle(t); len(written) != 1 || written[0].OwnerReferences[0].UID != "s2" {
		t.Fatalf("wrote %v", written)
	}
	if len(s.deleted) != 1 || s.deleted[0].Name != old.Name || *s.deleted[0].DeleteOptions.Preconditions.UID != old.UID {
		t.Errorf("deleted %v", s.deleted)
	}
	if behind := s.writes.Behind(web); len(behind) != 1 || behind[0].Deletes != 1 {
		t.Errorf("behind %v", behind)
	}
}

func TestARefusedDeletionIsNoDeletion(t *testing.T) {
	for name, refusal := range map[string]error{
		"409": apierrors.NewConflict(endpointSlices, "old", errors.New("a webhook says no")), "404": apierrors.NewNotFound(endpointSlices, "old"),
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, Options{}, service(), node("n", "a"), pod(1, "n"))
			old := s.settle(t)[0]
			s.cache(t, service(recreated))
			s.LookLive(fixture.LiveOf(func(schema.GroupResource, string) ([]metav1.Object, error) { return []metav1.Object{old}, nil }))
			refuse := true
			s.client.PrependReactor("delete", "endpointslices", func(clienttesting.Action) (bool, runtime.Object, error) {
				if refuse {
					return true, nil, refusal
				}
				return false, nil, nil
			})
			if err := s.sync(context.Background(), web).Err(); err == nil {
				t.Error("a slice that is there counts as deleted")
			}
			for _, slice := range s.written {
				s.cache(t, slice)
			}
			refuse = false
			if err := s.sync(context.Background(), web).Err(); err != nil || len(s.deleted) != 1 {
				t.Errorf("the next try: %v, deleted %v", err, s.deleted)
			}
		})
	}
}

func TestNoSliceIsCreatedForAServiceThatIsGoing(t *testing.T) {
	s := newShell(t, Options{}, service(ending), node("n", "a"), pod(1, "n"))
	if written := s.settle(t); len(written) != 0 {
		t.Errorf("wrote %v", written)
	}
}

func TestASliceThatIsGoingIsNotCounted(t *testing.T) {
	s := newShell(t, Options{}, service(), node("n", "a"), pod(1, "n"))
	going := s.settle(t)[0].DeepCopy()
	going.DeletionTimestamp = &metav1.Time{Time: time.Unix(9, 0)}
	s.cache(t, going)
	if written := s.settle(t); len(written) != 1 || written[0].Name == going.Name {
		t.Errorf("wrote %v", written)
	}
}

func TestTheCacheIsNotChanged(t *testing.T) {
	s := newShell(t, Options{}, service(), node("n", "a"), pod(1, "n"))
	cached := s.settle(t)[0]
	cached.Ports[0], cached.Ports[1] = cached.Ports[1], cached.Ports[0]
	cached.Endpoints[0].Addresses = []string{"10.0.0.9", "10.0.0.1"}
	before := cached.DeepCopy()
	s.cache(t, pod(2, "n"))
	s.settle(t)
	if diff := cmp.Diff(before, cached); diff != "" {
		t.Error(diff)
	}
}

func TestAWriteHoldsTheKeyUntilTheCacheShowsIt(t *testing.T) {
	s := newShell(t, Options{}, service(), node("n", "a"), pod(1, "n"))
	s.sync(context.Background(), web)
	if behind := s.writes.Behind(web); len(behind) != 1 || behind[0].Wrote != "101" {
		t.Errorf("behind %v", behind)
	}
	s.cache(t, s.written[0])
	if behind := s.writes.Behind(web); len(behind) != 0 {
		t.Errorf("behind %v after the cache has it", behind)
	}
	s.cache(t, pod(2, "n"))
	s.sync(context.Background(), web)
	if behind := s.writes.Behind(web); len(behind) != 1 || behind[0].Wrote != "102" {
		t.Errorf("behind %v after an update", behind)
	}
}

func TestHints(t *testing.T) {
	spread := []runtime.Object{node("n-a", "a"), node("n-b", "b"), pod(1, "n-a"), pod(2, "n-b")}
	t.Run("hints come with the first sync after a start", func(t *testing.T) {
		s := newShell(t, Options{}, append(spread, service(auto))...)
		if slice := s.settle(t)[0]; slice.Endpoints[0].Hints == nil || slice.Endpoints[1].Hints == nil {
			t.Errorf("no hints: %v", slice.Endpoints)
		}
		if said := s.said(); len(said) != 1 || said[0] != "Normal TopologyAwareHintsEnabled Topology Aware Hints has been enabled, addressType: IPv4" {
			t.Errorf("said %q", said)
		}
	})
	t.Run("a service beyond the share of its zones is woken by the nodes", func(t *testing.T) {
		s := newShell(t, Options{}, append(spread, service(auto))...)
		s.settle(t)
		s.cache(t, node("n-a2", "a", func(n *corev1.Node) { n.Status.Allocatable[corev1.ResourceCPU] = resource.MustParse("64") }))
		if err := s.sync(context.Background(), nodesKey).Err(); err != nil || s.Len() != 1 {
			t.Errorf("error %v, %d keys woken", err, s.Len())
		}
	})
	t.Run("without a node", func(t *testing.T) {
		s := newShell(t, Options{}, service(auto))
		s.settle(t)
		if said := s.said(); len(said) != 1 || said[0] != "Warning TopologyAwareHintsDisabled Nodes only ready in one zone, addressType: IPv4" {
			t.Errorf("said %q", said)
		}
	})
	t.Run("hints stand until the service is gone", func(t *testing.T) {
		s := newShell(t, Options{}, append(spread, service(auto))...)
		s.settle(t)
		if err := s.factory.Core().V1().Services().Informer().GetIndexer().Delete(service()); err != nil {
			t.Fatal(err)
		}
		if s.settle(t); s.topology.HasPopulatedHints("shop/web") {
			t.Error("a service that is gone is remembered")
		}
	})
	t.Run("the same node is preferred where the service says so", func(t *testing.T) {
		s := newShell(t, Options{}, append(spread, service(preferSameNode))...)
		for _, endpoint := range s.settle(t)[0].Endpoints {
			if endpoint.Hints == nil || len(endpoint.Hints.ForNodes) != 1 || endpoint.Hints.ForNodes[0].Name != *endpoint.NodeName {
				t.Errorf("hints %v of an endpoint on %s", endpoint.Hints, *endpoint.NodeName)
			}
		}
	})
}

// woken records the keys a watch rule wakes.
type woken []string

func (w *woken) Add(key types.NamespacedName) { *w = append(*w, key.String()) }
func (w *woken) AddAfter(key types.NamespacedName, d time.Duration) {
	*w = append(*w, fmt.Sprintf("%s after %s", key, d))
}

func TestWhatWakes(t *testing.T) {
	slice := func(change ...func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
		s := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", UID: "e1", Generation: 2, ResourceVersion: "20",
			Labels: map[string]string{discoveryv1.LabelServiceName: "web", discoveryv1.LabelManagedBy: ManagedBy}}}
		for _, f := range change {
			f(s)
		}
		return s
	}
	newer := func(s *discoveryv1.EndpointSlice) { s.Generation, s.ResourceVersion = 3, "21" }
	unmanaged := func(s *discoveryv1.EndpointSlice) {
		delete(s.Labels, discoveryv1.LabelManagedBy)
		s.ResourceVersion = "21"
	}
	renamed := func(s *discoveryv1.EndpointSlice) { s.Labels[discoveryv1.LabelServiceName] = "api" }
	type change = runner.Change[discoveryv1.EndpointSlice]
	ours := func(c *Controller) { c.generations.Update(slice()) }
	nobody := func(*Controller) {}
	onSlice := func(ch change) func(*Controller, wake) { return func(c *Controller, w wake) { c.onSlice(ch, w) } }
	onNode := func(before, after *corev1.Node) func(*Controller, wake) {
		return func(c *Controller, w wake) { c.onNode(runner.Change[corev1.Node]{Old: before, New: after}, w) }
	}
	for name, tc := range map[string]struct {
		know  func(*Controller)
		event func(*Controller, wake)
		want  string
	}{
		"what we wrote is no news":                     {ours, onSlice(change{Old: slice(), New: slice()}), ""},
		"a slice we created is no news":                {ours, onSlice(change{New: slice()}), ""},
		"a slice someone created for us is":            {nobody, onSlice(change{New: slice()}), "shop/web after 1s"},
		"a slice of the first list is not":             {nobody, onSlice(change{New: slice(), Initial: true}), ""},
		"a change by someone else is repaired":         {ours, onSlice(change{Old: slice(), New: slice(newer)}), "shop/web after 1s"},
		"a resync is no news":                          {nobody, onSlice(change{Old: slice(), New: slice()}), ""},
		"a slice taken from us is replaced":            {ours, onSlice(change{Old: slice(), New: slice(unmanaged)}), "shop/web after 1s"},
		"a slice moved to another service wakes both":  {ours, onSlice(change{Old: slice(), New: slice(renamed)}), "shop/web after 1s, shop/api after 1s"},
		"a deletion by someone else is repaired":       {ours, onSlice(change{Old: slice()}), "shop/web after 1s"},
		"also of a slice from before the start":        {nobody, onSlice(change{Old: slice()}), "shop/web after 1s"},
		"our own deletion is no news":                  {func(c *Controller) { c.generations.ExpectDeletion(slice()) }, onSlice(change{Old: slice()}), ""},
		"a deletion among the slices of others is not": {nobody, onSlice(change{Old: slice(unmanaged)}), ""},
		"a new node wakes the topology":                {nobody, onNode(nil, node("n", "a")), "/nodes"},
		"a heartbeat does not":                         {nobody, onNode(node("n", "a"), node("n", "a", heartbeat)), ""},
		"a node that is no longer ready does":          {nobody, onNode(node("n", "a"), node("n", "a", notReady)), "/nodes"},
		"a node that grows does":                       {nobody, onNode(node("n", "a"), node("n", "a", bigger)), "/nodes"},
		"a node that gets another zone does":           {nobody, onNode(node("n", "a"), node("n", "a", moved)), "/nodes"},
		"a node that turns control plane does":         {nobody, onNode(node("n", "a"), node("n", "a", controlPlane)), "/nodes"},
		"a node that goes does":                        {nobody, onNode(node("n", "a"), nil), "/nodes"},
		"a pod wakes its services": {nobody, func(c *Controller, w wake) {
			c.onPod(runner.Change[corev1.Pod]{New: pod(1, "n")}, w)
		}, "shop/web after 100ms"},
		"a pod of the first list does not": {nobody, func(c *Controller, w wake) {
			c.onPod(runner.Change[corev1.Pod]{New: pod(1, "n"), Initial: true}, w)
		}, ""},
		"a service wakes itself": {nobody, func(c *Controller, w wake) {
			c.onService(runner.Change[corev1.Service]{Old: service()}, w)
		}, "shop/web"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t, Options{BatchPeriod: 100 * time.Millisecond}, service())
			tc.know(s.Controller)
			var w woken
			tc.event(s.Controller, &w)
			if got := strings.Join(w, ", "); got != tc.want {
				t.Errorf("woke %q, want %q", got, tc.want)
			}
		})
	}
}

// One pod of a Service with ten changes, beside many other Services and pods
// that share a label with it.
func BenchmarkOnePodChange(b *testing.B) {
	for _, pods := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("services=1000,pods=%d", pods), func(b *testing.B) {
			s := newShell(b, Options{}, node("n", "a"))
			selector := func(i int) map[string]string {
				return map[string]string{"app": "shop", "part": fmt.Sprintf("part-%d", i)}
			}
			for i := range 1000 {
				s.cache(b, service(func(s *corev1.Service) {
					s.Name, s.UID, s.Spec.Selector = fmt.Sprintf("s-%d", i), types.UID(fmt.Sprint(i)), selector(i)
				}))
			}
			// Service 7 has ten pods in both sizes; the others share the rest.
			for i := range pods {
				part := 8 + i%900
				if i < 10 {
					part = 7
				}
				s.cache(b, pod(i, "n", func(p *corev1.Pod) { p.Labels = selector(part) }))
			}
			settle := func(key types.NamespacedName) {
				if err := s.sync(context.Background(), key).Err(); err != nil {
					b.Fatal(err)
				}
				for _, slice := range s.written {
					s.cache(b, slice)
				}
				s.written = nil
				s.client.ClearActions()
			}
			for i := range 1000 {
				settle(types.NamespacedName{Namespace: "shop", Name: fmt.Sprintf("s-%d", i)})
			}
			states := [2]*corev1.Pod{
				pod(3, "n", func(p *corev1.Pod) { p.Labels = selector(7) }),
				pod(3, "n", unready, func(p *corev1.Pod) { p.Labels = selector(7) })}
			key := types.NamespacedName{Namespace: "shop", Name: "s-7"}
			i := 0
			for b.Loop() {
				before, after := states[i%2], states[(i+1)%2]
				i++
				s.cache(b, after)
				var w woken
				s.onPod(runner.Change[corev1.Pod]{Old: before, New: after}, &w)
				if len(w) != 1 {
					b.Fatalf("woke %v", w)
				}
				settle(key)
			}
		})
	}
}
