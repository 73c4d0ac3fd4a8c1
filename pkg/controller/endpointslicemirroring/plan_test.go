package endpointslicemirroring

//lint:file-ignore SA1019 the old API is what this controller mirrors

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	utilnet "k8s.io/utils/net"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func endpointsOf(subsets ...corev1.EndpointSubset) *corev1.Endpoints {
	return &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web", UID: "e1",
		Labels: map[string]string{"team": "x"}, Annotations: map[string]string{"note": "y", corev1.EndpointsLastChangeTriggerTime: "t", corev1.LastAppliedConfigAnnotation: "{}"},
	}, Subsets: subsets}
}

func byHand() *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web"}}
}

// slicesFor are what mirrors the Endpoints, with names.
func slicesFor(e *corev1.Endpoints) (all []*discoveryv1.EndpointSlice) {
	wanted, _ := contents(canonical(e.Subsets), 1000)
	for i, c := range wanted {
		slice := newSlice(e, c)
		slice.Name, slice.UID, slice.ResourceVersion = fmt.Sprint("web-", i), types.UID(fmt.Sprint("s", i)), "1"
		all = append(all, slice)
	}
	return all
}

func TestPlan(t *testing.T) {
	a, b := offering(at("10.0.0.1"), nil, port("a", 80)), offering(at("10.0.0.2"), nil, port("b", 81))
	both := offering(at("10.0.0.1", "fd00::1"), nil, port("a", 80))
	spelt := offering(at("10.0.0.1"), at("::ffff:10.0.0.1", "010.0.0.1"), port("a", 80))
	there := func(subsets ...corev1.EndpointSubset) func(*observed) {
		return func(o *observed) { o.slices = slicesFor(endpointsOf(subsets...)) }
	}
	foreign := func(change func(*discoveryv1.EndpointSlice)) func(*observed) {
		return func(o *observed) { o.slices = slicesFor(endpointsOf(a)); change(o.slices[0]) }
	}
	labelled := func(subsets ...corev1.EndpointSubset) *corev1.Endpoints {
		e := endpointsOf(subsets...)
		e.Labels[discoveryv1.LabelManagedBy], e.Labels[discoveryv1.LabelServiceName] = "somebody", "other"
		return e
	}
	going := func(i int, subsets ...corev1.EndpointSubset) func(*observed) {
		return func(o *observed) { there(subsets...)(o); o.slices[i].DeletionTimestamp = &metav1.Time{} }
	}
	for name, c := range map[string]struct {
		endpoints *corev1.Endpoints
		set       func(*observed)
		want      string
	}{
		"first":                         {endpointsOf(a), nil, "create EndpointSlice"},
		"settled":                       {endpointsOf(a), there(a), ""},
		"nothing to mirror, none there": {endpointsOf(), nil, ""},
		"the last address goes":         {endpointsOf(), there(a), "delete EndpointSlice web-0 unchanged"},
		"another address":               {endpointsOf(offering(at("10.0.0.9"), nil, port("a", 80))), there(a), "report"},
		"other ports take the slice":    {endpointsOf(b), there(a), "update EndpointSlice web-0"},
		"one more":                      {endpointsOf(a, b), there(a), "create EndpointSlice"},
		"one less":                      {endpointsOf(a), there(a, b), "delete EndpointSlice web-1 unchanged"},
		"one family more":               {endpointsOf(both), there(a), "create EndpointSlice"},
		"no slice of another family is taken": {endpointsOf(offering(at("10.0.0.1"), nil, port("b", 81))), there(offering(at("fd00::1"), nil, port("a", 80))),
			"create EndpointSlice, delete EndpointSlice web-0 unchanged"},
		"both families change ports":             {endpointsOf(offering(at("10.0.0.1", "fd00::1"), nil, port("b", 81))), there(both), "update EndpointSlice web-0, update EndpointSlice web-1"},
		"labels of the slices' own on Endpoints": {labelled(a), func(o *observed) { o.slices = slicesFor(labelled(a)) }, ""},
		"a foreign label":                        {endpointsOf(a), foreign(func(s *discoveryv1.EndpointSlice) { s.Labels["other"] = "z" }), "update EndpointSlice web-0"},
		"a foreign annotation":                   {endpointsOf(a), foreign(func(s *discoveryv1.EndpointSlice) { s.Annotations["other"] = "z" }), "update EndpointSlice web-0"},
		"endpoints of another time":              {endpointsOf(a), foreign(func(s *discoveryv1.EndpointSlice) { s.OwnerReferences[0].UID = "e0" }), "update EndpointSlice web-0"},
		"a condition that is not ours": {endpointsOf(a), foreign(func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Serving = new(true) }),
			"update EndpointSlice web-0"},
		"an endpoint without an address": {endpointsOf(a), foreign(func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Addresses = nil }), "update EndpointSlice web-0"},
		"an endpoint twice":              {endpointsOf(a), foreign(func(s *discoveryv1.EndpointSlice) { s.Endpoints = append(s.Endpoints, s.Endpoints[0]) }), "update EndpointSlice web-0"},
		"ports that are nil": {endpointsOf(offering(at("10.0.0.1"), nil)), func(o *observed) {
			o.slices = slicesFor(endpointsOf(offering(at("10.0.0.1"), nil)))
			o.slices[0].Ports = nil
		}, ""},
		"a twin": {endpointsOf(a), func(o *observed) {
			o.slices = slicesFor(endpointsOf(a, b))
			o.slices[1].Ports = o.slices[0].Ports
		}, "delete EndpointSlice web-1 unchanged"},
		"two spellings of one address": {endpointsOf(spelt), there(spelt), ""},
		"and what was made of them before": {endpointsOf(spelt), func(o *observed) {
			there(spelt)(o)
			o.slices[0].Endpoints = append(o.slices[0].Endpoints, endpointOf(corev1.EndpointAddress{}, "10.0.0.1", true))
		}, "report"},
		"a slice of names": {endpointsOf(a), func(o *observed) {
			o.slices = slicesFor(endpointsOf(a, b))
			o.slices[1].AddressType = discoveryv1.AddressTypeFQDN
		}, "delete EndpointSlice web-1 unchanged"},
		"a slice that goes is current":        {endpointsOf(a), going(0, a), ""},
		"a slice that goes is kept current":   {endpointsOf(offering(at("10.0.0.9"), nil, port("a", 80))), going(0, a), "report"},
		"a slice that goes is not for others": {endpointsOf(b), going(0, a), "create EndpointSlice"},
		"a slice that goes, and its twin": {endpointsOf(offering(at("10.0.0.9"), nil, port("a", 80))), func(o *observed) {
			going(0, a, b)(o)
			o.slices[1].Ports = o.slices[0].Ports
		}, "update EndpointSlice web-1"},
		"a slice that goes is not deleted": {nil, going(0, a, b), "delete EndpointSlice web-1 unchanged"},
		"endpoints that go make none":      {endpointsOf(a), func(o *observed) { o.endpoints.DeletionTimestamp = &metav1.Time{} }, ""},
		"endpoints that go still change": {endpointsOf(b), func(o *observed) {
			o.slices = slicesFor(endpointsOf(a))
			o.endpoints.DeletionTimestamp = &metav1.Time{}
		}, "update EndpointSlice web-0"},
		"no endpoints":   {nil, there(a), "delete EndpointSlice web-0 unchanged"},
		"no service":     {endpointsOf(a), func(o *observed) { there(a, b)(o); o.service = nil }, "delete EndpointSlice web-0 unchanged, delete EndpointSlice web-1 unchanged"},
		"a selector":     {endpointsOf(a), func(o *observed) { there(a)(o); o.service.Spec.Selector = map[string]string{"a": "b"} }, "delete EndpointSlice web-0 unchanged"},
		"headless":       {endpointsOf(a), func(o *observed) { o.service.Spec.ClusterIP = corev1.ClusterIPNone }, "create EndpointSlice"},
		"external":       {endpointsOf(a), func(o *observed) { o.service.Spec.Type = corev1.ServiceTypeExternalName }, "create EndpointSlice"},
		"the skip label": {endpointsOf(a), func(o *observed) { there(a)(o); o.endpoints.Labels[discoveryv1.LabelSkipMirror] = "true" }, "delete EndpointSlice web-0 unchanged"},
		"the skip label says something else": {endpointsOf(a), func(o *observed) { o.endpoints.Labels[discoveryv1.LabelSkipMirror] = "True" },
			"create EndpointSlice"},
		"an election": {endpointsOf(a), func(o *observed) {
			there(a)(o)
			o.endpoints.Annotations[resourcelock.LeaderElectionRecordAnnotationKey] = ""
		}, "delete EndpointSlice web-0 unchanged"},
		"too many": {endpointsOf(offering(at("10.0.0.1", "10.0.0.2"), at("10.0.0.3"), port("a", 80))), func(o *observed) { o.most = 1 }, "tell Endpoints web, create EndpointSlice"},
		"invalid":  {endpointsOf(offering(at("10.0.0.1", "x"), nil, port("a", 80))), nil, "tell Endpoints web, create EndpointSlice"},
	} {
		t.Run(name, func(t *testing.T) {
			o := observed{endpoints: c.endpoints, service: byHand(), most: 1000}
			if c.set != nil {
				c.set(&o)
			}
			want := strings.Replace(c.want, "report", "update EndpointSlice web-0", 1)
			if got := fixture.Planned(plan(o, time.Time{})); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestThePlanSaysWhyAndHowMuch(t *testing.T) {
	a, b := offering(at("10.0.0.1"), nil, port("a", 80)), offering(at("10.0.0.2", "10.0.0.3"), nil, port("b", 81))
	for name, c := range map[string]struct {
		endpoints *corev1.Endpoints
		there     []*discoveryv1.EndpointSlice
		why       string
		want      turn
	}{
		"nothing there": {nil, nil, "nothing is mirrored: there are no Endpoints", turn{ended: true}},
		"all goes":      {nil, slicesFor(endpointsOf(a, b)), "2 slices are deleted: there are no Endpoints", turn{}},
		"settled": {endpointsOf(a, b), slicesFor(endpointsOf(a, b)),
			"3 endpoints in 2 slices mirror the Endpoints: 0 to create, 0 to update, 0 to delete", turn{numbers: numbers{3, 2, 2}}},
		"one more": {endpointsOf(a, b), slicesFor(endpointsOf(a)),
			"3 endpoints in 2 slices mirror the Endpoints: 1 to create, 0 to update, 0 to delete", turn{numbers: numbers{3, 2, 2}}},
		"one less": {endpointsOf(a), slicesFor(endpointsOf(a, b)),
			"1 endpoints in 1 slices mirror the Endpoints: 0 to create, 0 to update, 1 to delete", turn{numbers: numbers{1, 1, 1}}},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(observed{endpoints: c.endpoints, service: byHand(), slices: c.there, most: 1000}, time.Time{})
			if got := p.Note(nil).(turn); p.Why != c.why || got.numbers != c.want.numbers || got.ended != c.want.ended {
				t.Errorf("got %+v because %s", got, p.Why)
			}
		})
	}
}

func TestHowMuchChanges(t *testing.T) {
	// of has two ports, each with as many addresses of its own.
	of := func(n int) *corev1.Endpoints {
		first, second := []string{"10.0.0.1", "10.0.0.2"}, []string{"10.0.1.1", "10.0.1.2"}
		return endpointsOf(offering(at(first[:n]...), nil, port("a", 80)), offering(at(second[:n]...), nil, port("b", 81)))
	}
	down := endpointsOf(offering(nil, at("10.0.0.1"), port("a", 80)), offering(nil, at("10.0.1.1"), port("b", 81)))
	twice := slicesFor(of(1))
	twice[0].Endpoints = append(twice[0].Endpoints, twice[0].Endpoints[0])
	both := endpointsOf(offering(at("10.0.0.1", "fd00::1", "fd00::2"), nil, port("a", 80)))
	oneFamily, otherPort := endpointsOf(offering(at("10.0.0.1"), nil, port("a", 80))), endpointsOf(offering(at("10.0.0.1"), nil, port("b", 81)))
	for name, c := range map[string]struct {
		there     []*discoveryv1.EndpointSlice
		endpoints *corev1.Endpoints
		want      []float64 // added, updated, removed, skipped
	}{
		"nothing":                  {slicesFor(of(2)), of(2), []float64{0, 0, 0, 0}},
		"all is new":               {nil, of(2), []float64{4, 0, 0, 0}},
		"one more on each port":    {slicesFor(of(1)), of(2), []float64{2, 0, 0, 0}},
		"one less on each":         {slicesFor(of(2)), of(1), []float64{0, 0, 2, 0}},
		"one on each is not ready": {slicesFor(of(1)), down, []float64{0, 2, 0, 0}},
		"one was there twice":      {twice, of(1), []float64{0, 0, 1, 0}},
		"a family is gone":         {slicesFor(both), oneFamily, []float64{0, 0, 2, 0}},
		"with its ports it is not": {slicesFor(both), otherPort, []float64{1, 0, 0, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []float64
			for _, count := range plan(observed{endpoints: c.endpoints, service: byHand(), slices: c.there, most: 1000}, time.Time{}).Counts(nil) {
				got = append(got, count.Value)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestWhatASliceSays(t *testing.T) {
	e := endpointsOf(offering(at("10.0.0.1"), nil, port("a", 80)))
	e.Labels[discoveryv1.LabelManagedBy] = "somebody"
	p := plan(observed{endpoints: e, service: byHand(), most: 1000}, time.Time{})
	slice := p.Stages[0].Steps[0].(act.Create).Object.(*discoveryv1.EndpointSlice)
	want := map[string]string{"team": "x", discoveryv1.LabelManagedBy: ManagedBy, discoveryv1.LabelServiceName: "web"}
	if fmt.Sprint(slice.Labels) != fmt.Sprint(want) || fmt.Sprint(slice.Annotations) != "map[note:y]" || slice.GenerateName != "web-" {
		t.Errorf("got labels %v, annotations %v, prefix %q", slice.Labels, slice.Annotations, slice.GenerateName)
	}
	if ref := metav1.GetControllerOf(slice); ref == nil || ref.Kind != "Endpoints" || ref.APIVersion != "v1" || ref.UID != "e1" || !*ref.BlockOwnerDeletion {
		t.Errorf("controlled by %+v", ref)
	}
}

func TestTheEventsSayHowMany(t *testing.T) {
	e := endpointsOf(offering(at("10.0.0.1", "10.0.0.2", "x"), nil, port("a", 80)))
	p := plan(observed{endpoints: e, service: byHand(), most: 1}, time.Time{})
	var told []string
	for _, step := range p.Stages[0].Steps {
		if event, is := step.(act.Event); is {
			told = append(told, event.Type+" "+event.Reason+" "+event.Message)
		}
	}
	want := []string{"Warning InvalidIPAddress Skipped 1 invalid IP addresses when mirroring to EndpointSlices",
		"Warning TooManyAddressesToMirror A max of 1 addresses can be mirrored to EndpointSlices per Endpoints subset. 2 addresses were skipped"}
	if !slices.Equal(told, want) {
		t.Errorf("got %q", told)
	}
}

// Whatever slices there are, one plan leads to a state in which the next writes nothing. Once
// those that were being deleted are gone, one more leads to a state in which each address is
// offered on each port exactly as the Endpoints say.
func TestOnePlanSettlesAnyWorld(t *testing.T) {
	for seed := range testworld.Seeds(t, 300) {
		r := rand.New(rand.NewPCG(seed, 0))
		o := observed{endpoints: endpointsOf(someSubsets(r)...), service: byHand(), most: 1000, slices: slicesFor(endpointsOf(someSubsets(r)...))}
		for _, slice := range o.slices {
			if r.IntN(4) == 0 {
				slice.Endpoints = nil
			}
			if r.IntN(4) == 0 {
				slice.Ports = o.slices[0].Ports
			}
			if r.IntN(4) == 0 {
				slice.DeletionTimestamp = &metav1.Time{}
			}
		}
		settle := func() {
			first := plan(o, time.Time{})
			o.slices = carriedOut(o.slices, first)
			if again := plan(o, time.Time{}); len(again.Stages) > 0 {
				t.Fatalf("seed %d: after %s it plans %s", seed, fixture.Planned(first), fixture.Planned(again))
			}
		}
		settle()
		o.slices = slices.DeleteFunc(o.slices, func(s *discoveryv1.EndpointSlice) bool { return s.DeletionTimestamp != nil })
		settle()
		if got, want := offered(o.slices), meant(o.endpoints); got != want {
			t.Errorf("seed %d: offered:\n%s\nmeant:\n%s", seed, got, want)
		}
	}
}

func someSubsets(r *rand.Rand) (all []corev1.EndpointSubset) {
	ips := []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "fd00::1", "fd00::2", "010.0.0.1", "::ffff:10.0.0.2", "FD00::1"}
	some := func() (picked []string) {
		for _, ip := range ips {
			if r.IntN(3) == 0 {
				picked = append(picked, ip)
			}
		}
		return picked
	}
	for range r.IntN(4) {
		var ports []corev1.EndpointPort
		for i := range r.IntN(3) {
			ports = append(ports, port(string(rune('a'+i)), int32(80+r.IntN(2))))
		}
		all = append(all, offering(at(some()...), at(some()...), ports...))
	}
	return all
}

func carriedOut(there []*discoveryv1.EndpointSlice, p act.Plan) []*discoveryv1.EndpointSlice {
	there = slices.Clone(there)
	for _, stage := range p.Stages {
		for i, step := range stage.Steps {
			same := func(s *discoveryv1.EndpointSlice) bool { return s.Name == step.About().GetName() }
			switch s := step.(type) {
			case act.Create:
				slice := s.Object.(*discoveryv1.EndpointSlice)
				slice.Name = fmt.Sprint("new-", i)
				there = append(there, slice)
			case act.Update:
				there[slices.IndexFunc(there, same)] = s.Object.(*discoveryv1.EndpointSlice)
			case act.Delete:
				there = slices.DeleteFunc(there, same)
			}
		}
	}
	return there
}

func offered(all []*discoveryv1.EndpointSlice) string {
	var lines []string
	for _, s := range all {
		for _, e := range s.Endpoints {
			if len(s.Ports) == 0 {
				lines = append(lines, fmt.Sprintf("%s none %t", e.Addresses[0], *e.Conditions.Ready))
			}
			for _, p := range s.Ports {
				lines = append(lines, fmt.Sprintf("%s %s:%d %t", e.Addresses[0], *p.Name, *p.Port, *e.Conditions.Ready))
			}
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// meant reads the Endpoints without making them canonical first.
func meant(e *corev1.Endpoints) string {
	ready := map[string]bool{}
	note := func(s *corev1.EndpointSubset, addresses []corev1.EndpointAddress, is bool) {
		for _, a := range addresses {
			ip := utilnet.ParseIPSloppy(a.IP).String()
			if len(s.Ports) == 0 {
				before, known := ready[ip+" none"]
				ready[ip+" none"] = is && (before || !known)
			}
			for _, p := range s.Ports {
				key := fmt.Sprintf("%s %s:%d", ip, p.Name, p.Port)
				before, known := ready[key]
				ready[key] = is && (before || !known)
			}
		}
	}
	for i := range e.Subsets {
		note(&e.Subsets[i], e.Subsets[i].Addresses, true)
		note(&e.Subsets[i], e.Subsets[i].NotReadyAddresses, false)
	}
	var lines []string
	for key, is := range ready {
		lines = append(lines, fmt.Sprintf("%s %t", key, is))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func TestAnUpdateIsOfTheVersionSeenAndKeepsFinalizers(t *testing.T) {
	o := observed{endpoints: endpointsOf(offering(at("10.0.0.9"), nil, port("a", 80))), service: byHand(), most: 1000,
		slices: slicesFor(endpointsOf(offering(at("10.0.0.1"), nil, port("a", 80))))}
	o.slices[0].Finalizers = []string{"example.com/kept"}
	update, is := plan(o, time.Time{}).Stages[0].Steps[0].(act.Update)
	if !is || update.Object.GetResourceVersion() != "1" || !slices.Equal(update.Object.GetFinalizers(), []string{"example.com/kept"}) {
		t.Errorf("the update is %+v", update)
	}
}
