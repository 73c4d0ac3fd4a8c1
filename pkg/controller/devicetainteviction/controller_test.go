package devicetainteviction

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var theKey = key{Namespace: "ns", Name: "p"}

// claim is allocated device x of the pool "d/p" and reserved for the pod "p".
func claim(tolerations ...resourcev1.DeviceToleration) *resourcev1.ResourceClaim {
	c := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "uid-c", ResourceVersion: "1"}}
	c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{Results: []resourcev1.DeviceRequestAllocationResult{
		{Request: "r", Driver: "d", Pool: "p", Device: "x", Tolerations: tolerations}}}}
	c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "uid-p"}}
	return c
}

// rig is a controller whose caches are filled by hand and whose keys are reconciled by hand.
type rig struct {
	*fixture.Rig
	*Controller
	t *testing.T
}

func newRig(t *testing.T, objects ...runtime.Object) *rig {
	t.Helper()
	r := &rig{Rig: fixture.New(fake.NewClientset(objects...), noon), t: t}
	v1 := r.In.Resource().V1()
	c, err := New(Informers{
		Pods: r.In.Core().V1().Pods(), Claims: v1.ResourceClaims(), Slices: v1.ResourceSlices(),
		Rules: r.In.Resource().V1beta2().DeviceTaintRules(),
	}, r.Hand(), Options{Workers: 2, PodGroups: true})
	if err != nil {
		t.Fatal(err)
	}
	r.Controller = c
	r.Cache(t, objects...)
	c.LookLive(fixture.Live(r.Client))
	return r
}

// expect reconciles the pod and compares requests and events.
func (r *rig) expect(after time.Duration, requests, told string) runner.Result {
	r.t.Helper()
	r.Clock.SetTime(noon.Add(after))
	r.Client.ClearActions()
	result := r.podLoop.Reconcile(r.t.Context(), theKey)
	if got := r.Requests(); got != requests {
		r.t.Errorf("after %s: requests %q, want %q", after, got, requests)
	}
	if got := r.Told(); got != told {
		r.t.Errorf("after %s: told %q, want %q", after, got, told)
	}
	return result
}

const (
	eviction   = "get pods, patch pods/status, delete pods"
	marking    = "Normal DeviceTaintManagerEviction Marking for deletion"
	cancelling = "Normal DeviceTaintManagerEviction Cancelling deletion"
)

func TestAPodWaitsAndGoesOnce(t *testing.T) {
	r := newRig(t, pod("p"), claim(tolerateFor("a", 5)), slice("s", 1, device("x", broken("a"))))
	if look := r.expect(0, "", "").After(); look != 5*time.Second {
		t.Errorf("looks again after %s", look)
	}
	if look := r.expect(3*time.Second, "", "").After(); look != 2*time.Second {
		t.Errorf("looks again after %s", look)
	}
	var deleted metav1.DeleteOptions
	r.Client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		deleted = a.(clienttesting.DeleteActionImpl).DeleteOptions
		return true, nil, nil
	})
	r.expect(5*time.Second, eviction, marking)
	if deleted.Preconditions == nil || *deleted.Preconditions.UID != "uid-p" || deleted.GracePeriodSeconds != nil {
		t.Errorf("deleted with %v", deleted)
	}
	p, _ := r.Client.CoreV1().Pods("ns").Get(t.Context(), "p", metav1.GetOptions{})
	c := p.Status.Conditions
	if len(c) != 1 || c[0].Type != "DisruptionTarget" || c[0].Status != "True" || c[0].Reason != "DeletionByDeviceTaintManager" ||
		c[0].Message != "Device Taint manager: deleting due to NoExecute taint" || c[0].ObservedGeneration != 0 || !c[0].LastTransitionTime.Time.Equal(noon.Add(5*time.Second)) {
		t.Errorf("conditions %v", c)
	}
	r.expect(6*time.Second, "", "")
	_ = r.claims.Delete(claim())
	r.expect(7*time.Second, "", "") // a late word of an eviction that took place would be wrong
}

// TestWhichPodsGo has a row for each thing that a pod needs in order to be evicted.
func TestWhichPodsGo(t *testing.T) {
	name, group := "c", "g"
	owned := func(c *resourcev1.ResourceClaim, uid types.UID) *resourcev1.ResourceClaim {
		yes := true
		c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "p", UID: uid, Controller: &yes}}
		return c
	}
	generated := func(p *corev1.Pod, status ...corev1.PodResourceClaimStatus) *corev1.Pod {
		p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "dev", ResourceClaimTemplateName: &name}}
		p.Status.ResourceClaimStatuses = status
		return p
	}
	extended := pod("p")
	extended.Spec.ResourceClaims = nil
	extended.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "c"}
	grouped := pod("p")
	grouped.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &group}
	finished := pod("p")
	finished.Status.Phase = corev1.PodSucceeded
	changed := func(change func(*resourcev1.ResourceClaim)) *resourcev1.ResourceClaim {
		c := claim()
		change(c)
		return c
	}
	reservedFor := func(ref resourcev1.ResourceClaimConsumerReference) *resourcev1.ResourceClaim {
		return changed(func(c *resourcev1.ResourceClaim) {
			c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{ref}
		})
	}
	admin := true
	for name, tc := range map[string]struct {
		pod   *corev1.Pod
		claim *resourcev1.ResourceClaim
		goes  bool
	}{
		"a claim that it names":                {pod("p"), claim(), true},
		"a claim that is not there":            {pod("p"), nil, false},
		"a claim that is not allocated":        {pod("p"), changed(func(c *resourcev1.ResourceClaim) { c.Status.Allocation = nil }), false},
		"a claim that is not reserved":         {pod("p"), changed(func(c *resourcev1.ResourceClaim) { c.Status.ReservedFor = nil }), false},
		"a claim that is reserved for another": {pod("p"), reservedFor(resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: "p", UID: "other"}), false},
		"a claim of another device":            {pod("p"), changed(func(c *resourcev1.ResourceClaim) { c.Status.Allocation.Devices.Results[0].Device = "y" }), false},
		"a claim of another pool":              {pod("p"), changed(func(c *resourcev1.ResourceClaim) { c.Status.Allocation.Devices.Results[0].Pool = "q" }), false},
		"a claim of another driver":            {pod("p"), changed(func(c *resourcev1.ResourceClaim) { c.Status.Allocation.Devices.Results[0].Driver = "e" }), false},
		"a claim with admin access":            {pod("p"), changed(func(c *resourcev1.ResourceClaim) { c.Status.Allocation.Devices.Results[0].AdminAccess = &admin }), true},
		"tolerations of the spec do not count": {pod("p"), changed(func(c *resourcev1.ResourceClaim) {
			c.Spec.Devices.Requests = []resourcev1.DeviceRequest{{Exactly: &resourcev1.ExactDeviceRequest{Tolerations: []resourcev1.DeviceToleration{tolerate("")}}}}
		}), true},
		"tolerations of the allocation do":       {pod("p"), claim(tolerate("")), false},
		"no node":                                {unscheduled(), claim(), false},
		"a pod that has ended":                   {finished, claim(), true},
		"a template, without a name yet":         {generated(pod("p")), owned(claim(), "uid-p"), false},
		"a template that needs no claim":         {generated(pod("p"), corev1.PodResourceClaimStatus{Name: "dev"}), owned(claim(), "uid-p"), false},
		"a template":                             {generated(pod("p"), corev1.PodResourceClaimStatus{Name: "dev", ResourceClaimName: &name}), owned(claim(), "uid-p"), true},
		"a template, and the claim of another":   {generated(pod("p"), corev1.PodResourceClaimStatus{Name: "dev", ResourceClaimName: &name}), owned(claim(), "other"), false},
		"a template, and the claim of nobody":    {generated(pod("p"), corev1.PodResourceClaimStatus{Name: "dev", ResourceClaimName: &name}), claim(), false},
		"an extended resource":                   {extended, owned(claim(), "uid-p"), true},
		"an extended resource of another":        {extended, owned(claim(), "other"), false},
		"a claim that is reserved for its group": {grouped, reservedFor(resourcev1.ResourceClaimConsumerReference{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "g", UID: "uid-g"}), true},
		"a claim that is reserved for a group":   {pod("p"), reservedFor(resourcev1.ResourceClaimConsumerReference{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "g", UID: "uid-g"}), false},
		"a template of a pod that has no group": {
			generated(pod("p"), corev1.PodResourceClaimStatus{Name: "dev", ResourceClaimName: &name}), owned(claim(), "other"), false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []runtime.Object{tc.pod, slice("s", 1, device("x", broken("a")))}
			if tc.claim != nil {
				objects = append(objects, tc.claim)
			}
			if tc.goes {
				newRig(t, objects...).expect(0, eviction, marking)
			} else {
				newRig(t, objects...).expect(0, "", "")
			}
		})
	}
}

func TestCancelling(t *testing.T) {
	for name, change := range map[string]func(*rig){
		"the taint goes":               func(r *rig) { r.Cache(t, slice("s", 1, device("x"))) },
		"the device goes":              func(r *rig) { r.Cache(t, slice("s", 1)) },
		"a newer generation lacks it":  func(r *rig) { r.Cache(t, slice("s2", 2, device("x"))) },
		"the slice goes":               func(r *rig) { _ = r.slices.Delete(slice("s", 1)) },
		"it is tolerated without end":  func(r *rig) { r.Cache(t, claim(tolerate("a"))) },
		"the reservation goes":         func(r *rig) { c := claim(); c.Status.ReservedFor = nil; r.Cache(t, c) },
		"the allocation goes":          func(r *rig) { c := claim(); c.Status.Allocation = nil; r.Cache(t, c) },
		"the claim goes":               func(r *rig) { _ = r.claims.Delete(claim()) },
		"the claim is another by name": func(r *rig) { c := claim(); c.Status.ReservedFor[0].UID = "other"; r.Cache(t, c) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, pod("p"), claim(tolerateFor("a", 5)), slice("s", 1, device("x", broken("a"))))
			r.expect(0, "", "")
			change(r)
			r.expect(time.Second, "", cancelling)
			r.expect(5*time.Second, "", "")
		})
	}
}

func TestAPodThatGoesByItselfIsNotTold(t *testing.T) {
	r := newRig(t, pod("p"), claim(tolerateFor("a", 5)), slice("s", 1, device("x", broken("a"))))
	r.expect(0, "", "")
	_ = r.pods.Delete(pod("p"))
	r.expect(time.Second, "", "")
	if len(r.memory.booked) != 0 {
		t.Error("it is still to go")
	}
}

func TestWhatIsNotServedIsNotLookedAt(t *testing.T) {
	r := fixture.New(fake.NewClientset(), noon)
	v1 := r.In.Resource().V1()
	c, err := New(Informers{Pods: r.In.Core().V1().Pods(), Claims: v1.ResourceClaims(), Slices: v1.ResourceSlices()}, r.Hand(), Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.Cache(t, pod("p"), claim(), slice("s", 1, device("x")), rule("r", "*/*/*", "NoExecute"))
	if err := c.podLoop.Reconcile(t.Context(), theKey).Err(); err != nil || r.Requests() != "" {
		t.Errorf("did %s: %v", r.Requests(), err)
	}
}

func TestFailures(t *testing.T) {
	conflict := apierrors.NewConflict(corev1.Resource("pods"), "p", errors.New("a webhook says no"))
	notFound := apierrors.NewNotFound(corev1.Resource("pods"), "p")
	lost := apierrors.NewInternalError(errors.New("lost"))
	another := pod("p")
	another.UID = "another"
	for name, tc := range map[string]struct {
		verb  string
		err   error
		live  *corev1.Pod // of live looks at metadata
		tried bool        // again
	}{
		"a look that fails":                      {"get", lost, pod("p"), true},
		"a mark that fails":                      {"patch", lost, pod("p"), true},
		"a mark that a webhook refuses":          {"patch", conflict, pod("p"), true},
		"a mark of a pod that is gone":           {"patch", notFound, nil, false},
		"a mark of another of the name":          {"patch", conflict, another, false},
		"a deletion that a webhook refuses":      {"delete", conflict, pod("p"), true},
		"a deletion that is said to find nobody": {"delete", notFound, pod("p"), true},
		"a deletion of a pod that is gone":       {"delete", notFound, nil, false},
		"a deletion of another of the name":      {"delete", conflict, another, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, pod("p"), claim(), slice("s", 1, device("x", broken("a"))))
			r.LookLive(fixture.LiveOf(func(schema.GroupResource, string) ([]metav1.Object, error) {
				if tc.live == nil {
					return nil, nil
				}
				return []metav1.Object{tc.live}, nil
			}))
			if !tc.tried {
				r.Fail("delete", "pods", tc.err)
			}
			left := 2
			r.Client.PrependReactor(tc.verb, "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
				left--
				return left >= 0, nil, tc.err
			})
			tries, told := 1, ""
			for r.podLoop.Reconcile(t.Context(), theKey).Err() != nil && tries < 10 {
				tries++
			}
			if want := map[bool]int{true: 3, false: 1}[tc.tried]; tries != want {
				t.Errorf("%d tries, want %d", tries, want)
			}
			if told = r.Told(); told != marking {
				t.Errorf("told %q", told)
			}
			if a := r.memory.appointmentOf(theKey); a == nil || !a.evicted || a.counted != tc.tried {
				t.Errorf("appointment %+v", a)
			}
		})
	}
}

func TestAnAnswerThatFindsNobodyIsLookedAtAgain(t *testing.T) {
	r := newRig(t, claim(), slice("s", 1, device("x", broken("a"))))
	r.Cache(t, pod("p"))
	if again := r.expect(0, "get pods", "").After(); again != untilShown {
		t.Errorf("again after %s", again)
	}
}

func TestARule(t *testing.T) {
	q := pod("q")
	q.UID = "uid-q"
	shared := claim()
	shared.Status.ReservedFor = append(shared.Status.ReservedFor, resourcev1.ResourceClaimConsumerReference{Resource: "pods", Name: "q", UID: "uid-q"})
	r := newRig(t, pod("p"), q, unreserved(), shared, slice("s", 1, device("x"), device("y")), slice("old", 0, device("z")), rule("r", "d/*/*", "None"))
	ruleLooks := func() observedRule {
		t.Helper()
		o, err := r.observeRule(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	o := ruleLooks()
	if o.published != 2 || o.allocated != 1 || len(o.pods) != 2 || len(o.woken) != 3 || !o.fresh {
		t.Errorf("a dry run sees %+v", o)
	}
	if err := r.ruleLoop.Reconcile(t.Context(), "r").Err(); err != nil {
		t.Fatal(err)
	}
	if r.podLoop.Len() != 3 || ruleLooks().fresh {
		t.Errorf("%d pods were woken", r.podLoop.Len())
	}
	r.expect(0, "", "")

	executes := rule("r", "d/*/*", "NoExecute")
	executes.Generation = 2
	r.Cache(t, executes)
	if o := ruleLooks(); len(o.pods) != 2 || !o.fresh || o.published != 0 {
		t.Errorf("before evictions it sees %+v", o)
	}
	r.expect(0, eviction, marking)
	if o := ruleLooks(); len(o.pods) != 1 || o.pods[0].Name != "q" || o.evicted != 1 {
		t.Errorf("after an eviction it sees %+v", o)
	}
	r.Cache(t, leaving(q.DeepCopy()))
	if o := ruleLooks(); len(o.pods) != 0 {
		t.Errorf("a pod that goes already is counted: %+v", o)
	}

	replaced := rule("r", "d/*/*", "NoExecute")
	replaced.UID = "replaced"
	r.Cache(t, replaced)
	if o := ruleLooks(); o.evicted != 0 || !o.fresh {
		t.Errorf("a rule that took the name sees %+v", o)
	}
}

func TestTheDevicesThatARuleSelects(t *testing.T) {
	allocating := func(name string, tolerations []resourcev1.DeviceToleration, devices ...string) *resourcev1.ResourceClaim {
		c := claim()
		c.Name, c.UID, c.Status.Allocation.Devices.Results = name, types.UID("uid-"+name), nil
		for _, device := range devices {
			parts := strings.Split(device, "/")
			c.Status.Allocation.Devices.Results = append(c.Status.Allocation.Devices.Results,
				resourcev1.DeviceRequestAllocationResult{Request: "r", Driver: parts[0], Pool: parts[1], Device: parts[2], Tolerations: tolerations})
		}
		return c
	}
	another := "c2"
	user := pod("p")
	user.Spec.ResourceClaims = append(user.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "more", ResourceClaimName: &another})
	forever := []resourcev1.DeviceToleration{tolerate("")}
	for name, tc := range map[string]struct {
		selector      string
		claims        []*resourcev1.ResourceClaim
		devices, pods int
	}{
		"all of two pools":             {"d/*/*", []*resourcev1.ResourceClaim{allocating("c", nil, "d/p/x", "d/p/y", "d/q/x")}, 3, 1},
		"some of two pools":            {"d/*/x", []*resourcev1.ResourceClaim{allocating("c", nil, "d/p/x", "d/p/y", "d/q/x")}, 2, 1},
		"one":                          {"d/p/x", []*resourcev1.ResourceClaim{allocating("c", nil, "d/p/x", "d/p/y", "d/q/x")}, 1, 1},
		"one whose taint is tolerated": {"d/p/x", []*resourcev1.ResourceClaim{allocating("c", forever, "d/p/x")}, 1, 0},
		"those of two claims":          {"d/*/*", []*resourcev1.ResourceClaim{allocating("c", nil, "d/p/x"), allocating("c2", nil, "d/p/y")}, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, user, rule("r", tc.selector, "NoExecute"))
			for _, c := range tc.claims {
				r.Cache(t, c)
			}
			o, err := r.observeRule(t.Context(), "r")
			if err != nil {
				t.Fatal(err)
			}
			if o.allocated != tc.devices || len(o.pods) != tc.pods {
				t.Errorf("selects %d devices of %v", o.allocated, o.pods)
			}
		})
	}
}

// unreserved uses the claim, which is not reserved for it.
func unreserved() *corev1.Pod {
	p := pod("unreserved")
	p.UID = "uid-unreserved"
	return p
}

func TestARuleThatIsGoneCancels(t *testing.T) {
	r := newRig(t, pod("p"), claim(tolerateFor("r", 60)), slice("s", 1, device("x")), rule("r", "*/*/*", "NoExecute"))
	r.expect(0, "", "")
	_ = r.rules.Delete(rule("r", "", ""))
	if err := r.ruleLoop.Reconcile(t.Context(), "r").Err(); err != nil || r.podLoop.Len() != 1 {
		t.Errorf("%d pods were woken: %v", r.podLoop.Len(), err)
	}
	r.expect(0, "", cancelling)
	if len(r.memory.reports) != 0 {
		t.Error("the rule is still known")
	}
}

func TestARuleWhoseReportIsRefused(t *testing.T) {
	r := newRig(t, pod("p"), claim(), slice("s", 1, device("x")), rule("r", "*/*/*", "NoExecute"))
	r.Fail("patch", "devicetaintrules", apierrors.NewInternalError(errors.New("not now")))
	if err := r.ruleLoop.Reconcile(t.Context(), "r").Err(); err == nil {
		t.Error("the error is lost")
	}
	if r.podLoop.Len() != 1 {
		t.Error("its pod stays")
	}
	if got := r.Requests(); !strings.HasPrefix(got, "patch devicetaintrules/status") {
		t.Errorf("did %s", got)
	}
}
