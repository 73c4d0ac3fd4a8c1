package resourcepoolstatusrequest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func request(change ...func(*resourcev1alpha3.ResourcePoolStatusRequest)) *resourcev1alpha3.ResourcePoolStatusRequest {
	r := &resourcev1alpha3.ResourcePoolStatusRequest{ObjectMeta: metav1.ObjectMeta{Name: "r", UID: "u", ResourceVersion: "1", CreationTimestamp: metav1.NewTime(noon)}}
	r.Spec.Driver = "d"
	for _, by := range change {
		by(r)
	}
	return r
}

func inPool(name string) func(*resourcev1alpha3.ResourcePoolStatusRequest) {
	return func(r *resourcev1alpha3.ResourcePoolStatusRequest) { r.Spec.PoolName = &name }
}

func limited(n int32) func(*resourcev1alpha3.ResourcePoolStatusRequest) {
	return func(r *resourcev1alpha3.ResourcePoolStatusRequest) { r.Spec.Limit = &n }
}

// slice is one of so many of a pool, with so many devices, on a node if that is named.
func slice(pool string, generation, of int64, devices int, node string) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: pool, ResourceVersion: "1"}}
	s.Spec.Driver, s.Spec.Pool = "d", resourcev1.ResourcePool{Name: pool, Generation: generation, ResourceSliceCount: of}
	s.Spec.Devices = make([]resourcev1.Device, devices)
	if node != "" {
		s.Spec.NodeName = &node
	}
	return s
}

// claim has devices of these pools, written as driver and pool.
func claim(pools ...[2]string) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c"}}
	if len(pools) == 0 {
		return c
	}
	c.Status.Allocation = &resourcev1.AllocationResult{}
	for _, p := range pools {
		c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results, resourcev1.DeviceRequestAllocationResult{Driver: p[0], Pool: p[1], Device: "x"})
	}
	return c
}

// said is a pool of an answer: name, node, and generation, slices, and devices in all,
// allocated, available, unavailable.
type said struct {
	pool, node string
	numbers    [6]int64
}

func TestAnswer(t *testing.T) {
	type sliceList = []*resourcev1.ResourceSlice
	var many sliceList
	for i := range 101 {
		many = append(many, slice(string(rune('A'+i)), 1, 1, 0, ""))
	}
	for name, tc := range map[string]struct {
		request *resourcev1alpha3.ResourcePoolStatusRequest
		slices  sliceList
		claims  []*resourcev1.ResourceClaim
		count   int32
		pools   []said
		message string
		missing string
	}{
		"no pool": {request(), nil, nil, 0, nil, "Calculated status for 0 pools", ""},
		"pools by name": {request(), sliceList{slice("q", 1, 1, 2, ""), slice("p", 3, 1, 4, "n")}, nil, 2,
			[]said{{"p", "n", [6]int64{3, 1, 4, 0, 4, 0}}, {"q", "", [6]int64{1, 1, 2, 0, 2, 0}}}, "Calculated status for 2 pools", ""},
		"one pool": {request(inPool("q")), sliceList{slice("q", 1, 1, 2, ""), slice("p", 3, 1, 4, "")}, nil, 1,
			[]said{{"q", "", [6]int64{1, 1, 2, 0, 2, 0}}}, "Calculated status for 1 pools", ""},
		"a limit": {request(limited(1)), sliceList{slice("q", 1, 1, 2, ""), slice("p", 3, 1, 4, "")}, nil, 2,
			[]said{{"p", "", [6]int64{3, 1, 4, 0, 4, 0}}}, "Calculated status for 1 pools", ""},
		"several slices, on one node": {request(), sliceList{slice("p", 1, 2, 2, "n"), slice("p", 1, 2, 3, "n")}, nil, 1,
			[]said{{"p", "n", [6]int64{1, 2, 5, 0, 5, 0}}}, "Calculated status for 1 pools", ""},
		"several slices, on two nodes": {request(), sliceList{slice("p", 1, 2, 2, "n"), slice("p", 1, 2, 3, "m")}, nil, 1,
			[]said{{"p", "", [6]int64{1, 2, 5, 0, 5, 0}}}, "Calculated status for 1 pools", ""},
		"several slices, one without a node": {request(), sliceList{slice("p", 1, 2, 2, "n"), slice("p", 1, 2, 3, "")}, nil, 1,
			[]said{{"p", "", [6]int64{1, 2, 5, 0, 5, 0}}}, "Calculated status for 1 pools", ""},
		"only the newest generation": {request(), sliceList{slice("p", 1, 2, 9, "n"), slice("p", 2, 1, 3, ""), slice("p", 1, 2, 9, "n")}, nil, 1,
			[]said{{"p", "", [6]int64{2, 1, 3, 0, 3, 0}}}, "Calculated status for 1 pools", ""},
		"allocated devices": {request(), sliceList{slice("p", 1, 1, 4, "")},
			[]*resourcev1.ResourceClaim{claim([2]string{"d", "p"}, [2]string{"d", "q"}, [2]string{"e", "p"}), claim([2]string{"d", "p"}), claim()}, 1,
			[]said{{"p", "", [6]int64{1, 1, 4, 2, 2, 0}}}, "Calculated status for 1 pools", ""},
		"devices that are shared": {request(), sliceList{slice("p", 1, 1, 1, "")}, []*resourcev1.ResourceClaim{claim([2]string{"d", "p"}), claim([2]string{"d", "p"})}, 1,
			[]said{{"p", "", [6]int64{1, 1, 1, 2, 0, 0}}}, "Calculated status for 1 pools", ""},
		"a slice is missing": {request(), sliceList{slice("p", 7, 2, 1, ""), slice("o", 1, 1, 1, "")}, nil, 0, nil, "",
			"pool d/p is incomplete: observed 1/2 slices at generation 7"},
		"a slice is missing that is not in the answer": {request(limited(1)), sliceList{slice("p", 7, 2, 1, ""), slice("o", 1, 1, 1, "")}, nil, 2,
			[]said{{"o", "", [6]int64{1, 1, 1, 0, 1, 0}}}, "Calculated status for 1 pools", ""},
		"a slice of the old generation is missing": {request(), sliceList{slice("p", 1, 2, 1, ""), slice("p", 2, 1, 1, "")}, nil, 1,
			[]said{{"p", "", [6]int64{2, 1, 1, 0, 1, 0}}}, "Calculated status for 1 pools", ""},
		"a hundred at most, unless a limit says more": {request(), many, nil, 101, nil, "Calculated status for 100 pools", ""},
		"a limit of more": {request(limited(1000)), many, nil, 101, nil, "Calculated status for 101 pools", ""},
	} {
		t.Run(name, func(t *testing.T) {
			status, missing := observed{tc.request, tc.slices, tc.claims}.answer(noon)
			if missing != tc.missing {
				t.Fatalf("misses %q", missing)
			}
			if missing != "" {
				return
			}
			c := status.Conditions
			if *status.PoolCount != tc.count || len(c) != 1 || c[0].Type != "Complete" || c[0].Status != "True" || c[0].Reason != "CalculationComplete" ||
				c[0].Message != tc.message || !c[0].LastTransitionTime.Time.Equal(noon) || c[0].ObservedGeneration != 0 {
				t.Errorf("%d pools, conditions %+v", *status.PoolCount, c)
			}
			if tc.count > 100 {
				return
			}
			var got []said
			for _, p := range status.Pools {
				one := said{pool: p.PoolName, numbers: [6]int64{p.Generation, int64(*p.ResourceSliceCount), int64(*p.TotalDevices), int64(*p.AllocatedDevices), int64(*p.AvailableDevices), int64(*p.UnavailableDevices)}}
				if p.NodeName != nil {
					one.node = *p.NodeName
				}
				if p.Driver != "d" || p.ValidationError != nil {
					t.Errorf("pool %+v", p)
				}
				got = append(got, one)
			}
			if diff := cmp.Diff(tc.pools, got, cmp.AllowUnexported(said{})); diff != "" {
				t.Errorf("pools (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	complete := []*resourcev1.ResourceSlice{slice("p", 1, 1, 1, "")}
	partial := []*resourcev1.ResourceSlice{slice("p", 1, 2, 1, "")}
	answered := func(kind string, status metav1.ConditionStatus) func(*resourcev1alpha3.ResourcePoolStatusRequest) {
		return func(r *resourcev1alpha3.ResourcePoolStatusRequest) {
			r.Status = &resourcev1alpha3.ResourcePoolStatusRequestStatus{Conditions: []metav1.Condition{{Type: kind, Status: status, LastTransitionTime: metav1.NewTime(noon)}}}
		}
	}
	leaving := func(r *resourcev1alpha3.ResourcePoolStatusRequest) { r.DeletionTimestamp = &metav1.Time{Time: noon} }
	for name, tc := range map[string]struct {
		request *resourcev1alpha3.ResourcePoolStatusRequest
		slices  []*resourcev1.ResourceSlice
		after   time.Duration
		does    string
		again   time.Duration
	}{
		"a new one":                       {request(), complete, 0, "report ResourcePoolStatusRequest r", time.Hour},
		"one that is almost a day old":    {request(), complete, 24*time.Hour - 1, "report ResourcePoolStatusRequest r", time.Hour},
		"one nobody could answer":         {request(), complete, 24 * time.Hour, "delete ResourcePoolStatusRequest r unchanged", 0},
		"one that waits for a slice":      {request(), partial, time.Hour, "", 23 * time.Hour},
		"one that waited for a day":       {request(), partial, 24 * time.Hour, "delete ResourcePoolStatusRequest r unchanged", 0},
		"an answered one":                 {request(answered("Complete", "True")), partial, time.Minute, "", 59 * time.Minute},
		"answered an hour ago":            {request(answered("Complete", "True")), complete, time.Hour, "delete ResourcePoolStatusRequest r unchanged", 0},
		"failed an hour ago":              {request(answered("Failed", "True")), complete, time.Hour, "delete ResourcePoolStatusRequest r unchanged", 0},
		"one that is not said to be done": {request(answered("Complete", "False")), complete, 48 * time.Hour, "", 0},
		"one with another condition":      {request(answered("Seen", "True")), complete, 48 * time.Hour, "", 0},
		"one that is being deleted":       {request(leaving), complete, 0, "", 0},
		"an answered one that is going":   {request(answered("Complete", "True"), leaving), complete, 48 * time.Hour, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(observed{request: tc.request, slices: tc.slices}, noon.Add(tc.after))
			if fixture.Planned(p) != tc.does || p.RequeueAfter != tc.again || p.Why == "" {
				t.Errorf("does %q, again after %s, because %q", fixture.Planned(p), p.RequeueAfter, p.Why)
			}
		})
	}
}

type rig struct {
	*fixture.Rig
	*Controller
}

func newRig(t *testing.T, objects ...runtime.Object) rig {
	t.Helper()
	r := fixture.New(fake.NewClientset(objects...), noon)
	v1 := r.In.Resource().V1()
	c, err := New(r.In.Resource().V1alpha3().ResourcePoolStatusRequests(), v1.ResourceSlices(), v1.ResourceClaims(), r.Hand())
	if err != nil {
		t.Fatal(err)
	}
	r.Cache(t, objects...)
	c.LookLive(fixture.Live(r.Client))
	return rig{r, c}
}

func TestARequestIsAnsweredOnce(t *testing.T) {
	r := newRig(t, request(), slice("p", 1, 1, 2, ""), claim([2]string{"d", "p"}))
	result := r.Reconcile(t.Context(), "r")
	if result.Err() != nil || result.After() != time.Hour || r.Requests() != "update resourcepoolstatusrequests/status" {
		t.Errorf("did %s: %v", r.Requests(), result.Err())
	}
	live, err := r.Client.ResourceV1alpha3().ResourcePoolStatusRequests().Get(t.Context(), "r", metav1.GetOptions{})
	if err != nil || live.Status == nil || *live.Status.Pools[0].AllocatedDevices != 1 {
		t.Fatalf("status %+v, %v", live.Status, err)
	}
	r.Cache(t, live, slice("q", 1, 1, 2, ""))
	r.Client.ClearActions()
	if err := r.Reconcile(t.Context(), "r").Err(); err != nil || r.Requests() != "" {
		t.Errorf("did %s: %v", r.Requests(), err)
	}
	if err := r.Reconcile(t.Context(), "gone").Err(); err != nil || r.Requests() != "" {
		t.Errorf("did %s: %v", r.Requests(), err)
	}
}

func TestFailures(t *testing.T) {
	resource := schema.GroupResource{Group: "resource.k8s.io", Resource: "resourcepoolstatusrequests"}
	for name, tc := range map[string]struct {
		err    error
		failed bool
	}{
		"a refusal is tried again":  {apierrors.NewForbidden(resource, "r", errors.New("no")), true},
		"a conflict is tried again": {apierrors.NewConflict(resource, "r", errors.New("changed")), true},
		"nothing wrong":             {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, request(), slice("p", 1, 1, 2, ""))
			if tc.err != nil {
				r.Client.PrependReactor("update", "resourcepoolstatusrequests", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, tc.err })
			}
			if err := r.Reconcile(t.Context(), "r").Err(); (err != nil) != tc.failed {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestARequestThatCannotBeAnsweredIsDeletedAfterADay(t *testing.T) {
	r := newRig(t, request(), slice("p", 1, 1, 2, ""))
	resource := schema.GroupResource{Group: "resource.k8s.io", Resource: "resourcepoolstatusrequests"}
	r.Fail("update", resource.Resource, apierrors.NewForbidden(resource, "r", errors.New("no")))
	for _, step := range []struct {
		after  time.Duration
		does   string
		failed bool
	}{
		{time.Hour, "update resourcepoolstatusrequests/status", true},
		{22 * time.Hour, "update resourcepoolstatusrequests/status", true},
		{time.Hour, "delete resourcepoolstatusrequests", false},
	} {
		r.Clock.Step(step.after)
		r.Client.ClearActions()
		if err := r.Reconcile(t.Context(), "r").Err(); (err != nil) != step.failed || r.Requests() != step.does {
			t.Errorf("did %s: %v", r.Requests(), err)
		}
	}
}

func TestCounts(t *testing.T) {
	p := plan(observed{request: request(), slices: []*resourcev1.ResourceSlice{slice("p", 1, 1, 1, "")}}, noon)
	if n := len(p.Counts(act.Results{{Became: act.Done}})); n != 2 {
		t.Errorf("an answer changes %d metrics", n)
	}
	if n := len(p.Counts(act.Results{{Became: act.Refused, Err: errors.New("no")}})); n != 3 {
		t.Errorf("a failure changes %d metrics", n)
	}
	if p := plan(observed{request: request(), slices: []*resourcev1.ResourceSlice{slice("p", 1, 2, 1, "")}}, noon); p.Counts != nil {
		t.Error("a request that waits is counted")
	}
}

type wakes map[string]bool

func (w wakes) Add(name string)                       { w[name] = true }
func (w wakes) AddAfter(name string, _ time.Duration) { w[name] = true }

func TestASliceWakesWhatWaitsForIt(t *testing.T) {
	done, other := request(), request()
	done.Name, done.Status = "done", &resourcev1alpha3.ResourcePoolStatusRequestStatus{}
	other.Name, other.Spec.Driver = "other", "e"
	r := newRig(t, request(), done, other)
	one := slice("p", 1, 1, 1, "")
	for name, tc := range map[string]struct {
		change runner.Change[resourcev1.ResourceSlice]
		want   bool
	}{
		"new":                {runner.Change[resourcev1.ResourceSlice]{New: one}, true},
		"gone":               {runner.Change[resourcev1.ResourceSlice]{Old: one}, true},
		"there at the start": {runner.Change[resourcev1.ResourceSlice]{New: one, Initial: true}, false},
		"a resync":           {runner.Change[resourcev1.ResourceSlice]{Old: one, New: one}, false},
	} {
		w := wakes{}
		r.wakePending(tc.change, w)
		if w["r"] != tc.want || len(w) > 1 {
			t.Errorf("%s: woken %v", name, w)
		}
	}
	w := wakes{}
	wakeRequest(runner.Change[resourcev1alpha3.ResourcePoolStatusRequest]{New: request()}, w)
	wakeRequest(runner.Change[resourcev1alpha3.ResourcePoolStatusRequest]{Old: other}, w)
	if !w["r"] || len(w) != 1 {
		t.Errorf("woken %v", w)
	}
}
