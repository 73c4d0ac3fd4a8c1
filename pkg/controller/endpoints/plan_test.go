package endpoints

//lint:file-ignore SA1019 the old API is what this controller keeps

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 5, time.UTC)

func service(change ...func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Labels: map[string]string{"team": "x"}},
		Spec: corev1.ServiceSpec{
			Selector: map[string]string{"app": "web"}, ClusterIP: "10.96.0.1", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP, TargetPort: intstr.FromInt32(8080)}},
		},
	}
	for _, f := range change {
		f(s)
	}
	return s
}

func headless(s *corev1.Service)        { s.Spec.ClusterIP = corev1.ClusterIPNone }
func withoutPorts(s *corev1.Service)    { s.Spec.Ports = nil }
func publishAll(s *corev1.Service)      { s.Spec.PublishNotReadyAddresses = true }
func withoutFamilies(s *corev1.Service) { s.Spec.IPFamilies = nil }
func v6First(s *corev1.Service) {
	s.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv6Protocol, corev1.IPv4Protocol}
}
func v6ClusterIP(s *corev1.Service) { s.Spec.ClusterIP = "fd00::1"; s.Spec.IPFamilies = nil }

func target(name string, to intstr.IntOrString, protocol corev1.Protocol) func(*corev1.Service) {
	return func(s *corev1.Service) {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: name, Port: 90, Protocol: protocol, TargetPort: to})
	}
}

// pod returns a ready pod at 10.0.0.i.
func pod(i int, change ...func(*corev1.Pod)) *corev1.Pod {
	ip := fmt.Sprintf("10.0.%d.%d", i/256, i%256)
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: fmt.Sprintf("p%d", i), UID: types.UID(fmt.Sprintf("uid-%d", i)), Labels: map[string]string{"app": "web"}}}
	p.Spec.NodeName = "n"
	p.Spec.Containers = []corev1.Container{{Name: "c"}}
	p.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}},
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
	}
	for _, f := range change {
		f(p)
	}
	return p
}

func unready(p *corev1.Pod)   { p.Status.Conditions = nil }
func ending(p *corev1.Pod)    { p.DeletionTimestamp = &metav1.Time{Time: noon} }
func succeeded(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }
func unbound(p *corev1.Pod)   { p.Spec.NodeName = "" }
func noAddress(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = "", nil }
func named(p *corev1.Pod)     { p.Spec.Hostname, p.Spec.Subdomain = "one", "web" }
func dualStack(p *corev1.Pod) { p.Status.PodIPs = append(p.Status.PodIPs, corev1.PodIP{IP: "fd00::7"}) }
func offers(name string, port int32) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports,
			corev1.ContainerPort{Name: name, ContainerPort: port, Protocol: corev1.ProtocolTCP})
	}
}

// brief prints subsets as ready/notReady:ports.
func brief(subsets []corev1.EndpointSubset) []string {
	var all []string
	for _, s := range subsets {
		line := ""
		for _, a := range s.Addresses {
			line += a.IP + " "
		}
		line += "/"
		for _, a := range s.NotReadyAddresses {
			line += " " + a.IP
		}
		line += ":"
		for _, p := range s.Ports {
			line += fmt.Sprintf(" %s=%d/%s", p.Name, p.Port, p.Protocol)
		}
		all = append(all, line)
	}
	return all
}

func TestSubsets(t *testing.T) {
	byName := target("web", intstr.FromString("web"), corev1.ProtocolTCP)
	for name, tc := range map[string]struct {
		service *corev1.Service
		pods    []*corev1.Pod
		want    []string
	}{
		"no pods make no subset":                           {service(), nil, nil},
		"ready and other addresses share a subset":         {service(), []*corev1.Pod{pod(2), pod(1), pod(3, unready)}, []string{"10.0.0.1 10.0.0.2 / 10.0.0.3: http=8080/TCP"}},
		"a service that publishes all calls all ready":     {service(publishAll), []*corev1.Pod{pod(1, unready)}, []string{"10.0.0.1 /: http=8080/TCP"}},
		"a pod that is shutting down is left out":          {service(), []*corev1.Pod{pod(1, ending), pod(2)}, []string{"10.0.0.2 /: http=8080/TCP"}},
		"unless the service publishes all":                 {service(publishAll), []*corev1.Pod{pod(1, ending)}, []string{"10.0.0.1 /: http=8080/TCP"}},
		"a finished pod is left out even then":             {service(publishAll), []*corev1.Pod{pod(1, succeeded)}, nil},
		"a pod without an address is left out":             {service(), []*corev1.Pod{pod(1, noAddress)}, nil},
		"ports with the same addresses share a subset":     {service(target("dns", intstr.FromInt32(53), corev1.ProtocolUDP)), []*corev1.Pod{pod(1)}, []string{"10.0.0.1 /: http=8080/TCP dns=53/UDP"}},
		"a port is found by name in each pod":              {service(withoutPorts, byName), []*corev1.Pod{pod(1, offers("web", 1)), pod(2, offers("web", 2))}, []string{"10.0.0.2 /: web=2/TCP", "10.0.0.1 /: web=1/TCP"}},
		"a pod without the named port is left out of it":   {service(withoutPorts, byName), []*corev1.Pod{pod(1, offers("web", 1)), pod(2)}, []string{"10.0.0.1 /: web=1/TCP"}},
		"a pod that is ready differs from one that is not": {service(byName), []*corev1.Pod{pod(1, offers("web", 1)), pod(2, unready)}, []string{"10.0.0.1 / 10.0.0.2: http=8080/TCP", "10.0.0.1 /: web=1/TCP"}},
		"a headless service needs no ports":                {service(headless, withoutPorts), []*corev1.Pod{pod(1), pod(2, unready)}, []string{"10.0.0.1 / 10.0.0.2:"}},
		"a service with an address does":                   {service(withoutPorts), []*corev1.Pod{pod(1)}, nil},
		"only the first family is listed":                  {service(v6First), []*corev1.Pod{pod(1, dualStack), pod(2)}, []string{"fd00::7 /: http=8080/TCP"}},
		"without families the cluster IP tells":            {service(v6ClusterIP), []*corev1.Pod{pod(1, dualStack)}, []string{"fd00::7 /: http=8080/TCP"}},
		"and without a cluster IP the pod's first address": {service(headless, withoutFamilies), []*corev1.Pod{pod(1, dualStack)}, []string{"10.0.0.1 /: http=8080/TCP"}},
		"two equal ports of a service list a pod once":     {service(target("http", intstr.FromInt32(8080), corev1.ProtocolTCP)), []*corev1.Pod{pod(1)}, []string{"10.0.0.1 /: http=8080/TCP"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := subsetsOf(tc.service, tc.pods)
			if diff := cmp.Diff(unordered(tc.want), unordered(brief(got))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func unordered(lines []string) map[string]bool {
	set := map[string]bool{}
	for _, line := range lines {
		set[line] = true
	}
	return set
}

func TestAddressesSayWhoseTheyAre(t *testing.T) {
	got := subsetsOf(service(), []*corev1.Pod{pod(1, named), pod(2, unbound)})
	node := "n"
	want := []corev1.EndpointAddress{
		{IP: "10.0.0.1", Hostname: "one", NodeName: &node, TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "p1", UID: "uid-1"}},
		{IP: "10.0.0.2", TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: "shop", Name: "p2", UID: "uid-2"}},
	}
	if diff := cmp.Diff(want, got[0].Addresses); diff != "" {
		t.Error(diff)
	}
}

func TestTheOrderOfThePodsDoesNotMatter(t *testing.T) {
	s := service(target("web", intstr.FromString("web"), corev1.ProtocolTCP))
	var pods []*corev1.Pod
	for i := range 40 {
		p := pod(i+1, offers("web", int32(i%3)+1))
		if i%5 == 0 {
			unready(p)
		}
		pods = append(pods, p)
	}
	want := subsetsOf(s, pods)
	for seed := range testworld.Seeds(t, 50) {
		rand.New(rand.NewPCG(seed, seed)).Shuffle(len(pods), func(i, j int) { pods[i], pods[j] = pods[j], pods[i] })
		if diff := cmp.Diff(want, subsetsOf(s, pods)); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

// The objects in testdata come from a settled cluster. The order of subsets,
// addresses and ports in them is what any binary that takes over must write.
func TestASettledClusterIsLeftAlone(t *testing.T) {
	pods, services, settled := readSettled(t)
	for name, current := range settled {
		t.Run(name, func(t *testing.T) {
			p := planFor(services[name], pods, current, noon)
			if does := fixture.Planned(p); does != "" {
				t.Errorf("%s because %s: %s", does, p.Why, cmp.Diff(current.Subsets, wanted(p).Subsets))
			}
		})
	}
	if len(settled) < 12 {
		t.Errorf("only %d endpoints in testdata", len(settled))
	}
}

func readSettled(t *testing.T) ([]*corev1.Pod, map[string]*corev1.Service, map[string]*corev1.Endpoints) {
	t.Helper()
	data, err := os.ReadFile("testdata/settled.json")
	if err != nil {
		t.Fatal(err)
	}
	var list struct{ Items []json.RawMessage }
	if err := json.Unmarshal(data, &list); err != nil {
		t.Fatal(err)
	}
	var pods []*corev1.Pod
	services, settled := map[string]*corev1.Service{}, map[string]*corev1.Endpoints{}
	for _, item := range list.Items {
		var kind metav1.TypeMeta
		read(t, item, &kind)
		switch kind.Kind {
		case "Pod":
			pods = append(pods, read(t, item, &corev1.Pod{}))
		case "Service":
			s := read(t, item, &corev1.Service{})
			services[s.Name] = s
		case "Endpoints":
			e := read(t, item, &corev1.Endpoints{})
			settled[e.Name] = e
		}
	}
	return pods, services, settled
}

func read[T any](t *testing.T, item json.RawMessage, into *T) *T {
	t.Helper()
	if err := json.Unmarshal(item, into); err != nil {
		t.Fatal(err)
	}
	return into
}

// wanted are the endpoints that a plan writes, nil if it writes none.
func wanted(p act.Plan) *corev1.Endpoints {
	if p.Stages == nil {
		return nil
	}
	return p.Stages[0].Steps[0].About().(*corev1.Endpoints)
}

func TestPlan(t *testing.T) {
	pods := []*corev1.Pod{pod(1), pod(2, unready)}
	settled := func(change ...func(*corev1.Endpoints)) *corev1.Endpoints {
		e := wanted(planFor(service(), pods, nil, noon))
		e.ResourceVersion = "7"
		for _, f := range change {
			f(e)
		}
		return e
	}
	for name, tc := range map[string]struct {
		service *corev1.Service
		current *corev1.Endpoints
		want    string
		why     string
	}{
		"no endpoints yet":                       {service(), nil, "create Endpoints web", "the service has no endpoints object"},
		"all is said already":                    {service(), settled(), "", "the endpoints are up to date"},
		"a pod's resource version is no change":  {service(), settled(func(e *corev1.Endpoints) { e.Subsets[0].Addresses[0].TargetRef.ResourceVersion = "9" }), "", "the endpoints are up to date"},
		"an annotation of others is no change":   {service(), settled(func(e *corev1.Endpoints) { e.Annotations["note"] = "x" }), "", "the endpoints are up to date"},
		"a lost address is put back":             {service(), settled(func(e *corev1.Endpoints) { e.Subsets[0].Addresses = nil }), "update Endpoints web", "the addresses or ports differ"},
		"a label of the service is followed":     {service(func(s *corev1.Service) { s.Labels["tier"] = "1" }), settled(), "update Endpoints web", "the labels differ"},
		"a label the service lacks is removed":   {service(), settled(func(e *corev1.Endpoints) { e.Labels["foo"] = "bar" }), "update Endpoints web", "the labels differ"},
		"the managing label is put back":         {service(), settled(func(e *corev1.Endpoints) { delete(e.Labels, LabelManagedBy) }), "update Endpoints web", "the labels differ"},
		"a lost word headless is no change":      {service(headless), settled(), "", "the endpoints are up to date"},
		"nor is that word on another Service":    {service(func(s *corev1.Service) { s.Labels[corev1.IsHeadlessService] = "" }), settled(), "", "the endpoints are up to date"},
		"a wrong word headless is no change":     {service(), settled(func(e *corev1.Endpoints) { e.Labels[corev1.IsHeadlessService] = "" }), "", "the endpoints are up to date"},
		"so is one that holds no more":           {service(), settled(func(e *corev1.Endpoints) { e.Annotations[corev1.EndpointsOverCapacity] = truncatedValue }), "update Endpoints web", "the over-capacity annotation differs"},
		"a wrong claim of truncation is removed": {service(), settled(func(e *corev1.Endpoints) { e.Annotations[corev1.EndpointsOverCapacity] = "warning" }), "update Endpoints web", "the over-capacity annotation differs"},
	} {
		t.Run(name, func(t *testing.T) {
			got := planFor(tc.service, pods, tc.current, noon)
			if fixture.Planned(got) != tc.want || got.Why != tc.why+": 1 addresses are ready, 1 are not" {
				t.Errorf("got %s because %s", fixture.Planned(got), got.Why)
			}
			if e := wanted(got); tc.current != nil && e != nil && (e.ResourceVersion != "7" || e == tc.current) {
				t.Error("an update must carry the version it was decided on, and leave the cached object alone")
			}
		})
	}
}

func TestWhatIsWritten(t *testing.T) {
	s := service(headless, func(s *corev1.Service) { s.Labels[corev1.IsHeadlessService] = "mine"; s.Labels[LabelManagedBy] = "me" })
	current := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", Annotations: map[string]string{
		"note": "x", corev1.EndpointsLastChangeTriggerTime: "old", corev1.EndpointsOverCapacity: "truncated"}}}
	got := wanted(planFor(s, []*corev1.Pod{pod(1)}, current, time.Time{}))
	want := metav1.ObjectMeta{
		Namespace: "shop", Name: "web",
		Labels:      map[string]string{"team": "x", corev1.IsHeadlessService: "", LabelManagedBy: ManagedBy},
		Annotations: map[string]string{"note": "x"},
	}
	if diff := cmp.Diff(want, got.ObjectMeta); diff != "" {
		t.Error(diff)
	}
	if got := wanted(planFor(s, nil, nil, noon)).Annotations[corev1.EndpointsLastChangeTriggerTime]; got != "2026-05-01T12:00:00.000000005Z" {
		t.Errorf("trigger time %q", got)
	}
}

func TestTruncated(t *testing.T) {
	subset := func(ready, notReady int) corev1.EndpointSubset {
		return corev1.EndpointSubset{Addresses: make([]corev1.EndpointAddress, ready), NotReadyAddresses: make([]corev1.EndpointAddress, notReady)}
	}
	type subsets = []corev1.EndpointSubset
	for name, tc := range map[string]struct {
		given, want subsets
		over        bool
	}{
		"all that fit are kept":                            {subsets{subset(500, 500)}, subsets{subset(500, 500)}, false},
		"those that are not ready go first":                {subsets{subset(900, 200)}, subsets{subset(900, 100)}, true},
		"by share of each subset":                          {subsets{subset(400, 300), subset(400, 100)}, subsets{subset(400, 150), subset(400, 50)}, true},
		"then ready ones, and all that are not ready":      {subsets{subset(1200, 5)}, subsets{subset(1000, 0)}, true},
		"by share, rounded up, the last gets what is left": {subsets{subset(1000, 1), subset(1, 0), subset(2, 0)}, subsets{subset(998, 0), subset(1, 0), subset(1, 0)}, true},
		"one with as many of both is not dropped":          {subsets{subset(500, 600)}, subsets{subset(500, 500)}, true},
		"a subset that keeps nothing is dropped":           {subsets{subset(1000, 0), subset(0, 9)}, subsets{subset(1000, 0)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			got, over := truncated(tc.given, maxAddresses)
			if over != tc.over || len(got) != len(tc.want) {
				t.Fatalf("got %d subsets, over %v", len(got), over)
			}
			for i := range got {
				r, n := count(got[i : i+1])
				wantR, wantN := count(tc.want[i : i+1])
				if r != wantR || n != wantN {
					t.Errorf("subset %d: got %d ready %d not, want %d and %d", i, r, n, wantR, wantN)
				}
			}
		})
	}
}

func TestTruncatedEndpointsAreNotWrittenAgain(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 1200 {
		pods = append(pods, pod(i))
	}
	first := wanted(planFor(service(), pods, nil, noon))
	if r, _ := count(first.Subsets); r != maxAddresses || first.Annotations[corev1.EndpointsOverCapacity] != truncatedValue {
		t.Errorf("%d addresses, annotations %v", r, first.Annotations)
	}
	if again := planFor(service(), pods, first, noon); again.Stages != nil {
		t.Errorf("again: %s because %s", fixture.Planned(again), again.Why)
	}
}
