package devicetainteviction

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

type wakes[K comparable] map[K]bool

func (w wakes[K]) Add(k K)                       { w[k] = true }
func (w wakes[K]) AddAfter(k K, _ time.Duration) { w[k] = true }

// change returns a copy of an object that differs.
func change[T interface{ DeepCopy() T }](object T, by func(T)) T {
	object = object.DeepCopy()
	by(object)
	return object
}

func TestWhatWakesAPod(t *testing.T) {
	name := "c"
	plain := change(pod("p"), func(p *corev1.Pod) { p.Spec.ResourceClaims = nil })
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		booked, want  bool
	}{
		"new":                            {nil, pod("p"), false, true},
		"new, without devices":           {nil, plain, false, false},
		"nothing of it concerns devices": {pod("p"), change(pod("p"), func(p *corev1.Pod) { p.Status.Phase = "Running" }), true, false},
		"bound":                          {unscheduled(), pod("p"), false, true},
		"its claims have names": {pod("p"), change(pod("p"), func(p *corev1.Pod) {
			p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "dev", ResourceClaimName: &name}}
		}), false, true},
		"it has a claim that was not in it": {plain, change(plain, func(p *corev1.Pod) {
			p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: "c"}
		}), false, true},
		"deleted":                {pod("p"), leaving(pod("p")), false, true},
		"replaced":               {pod("p"), change(pod("p"), func(p *corev1.Pod) { p.UID = "other" }), false, true},
		"gone":                   {pod("p"), nil, false, false},
		"gone, and it was to go": {pod("p"), nil, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if tc.booked {
				r.memory.book(theKey, &appointment{uid: "uid-p"})
			}
			woken := wakes[key]{}
			r.wakePod(runner.Change[corev1.Pod]{Old: tc.before, New: tc.after}, woken)
			if woken[theKey] != tc.want {
				t.Errorf("woken: %v", woken)
			}
		})
	}
}

func TestWhatWakesThePodsOfAClaim(t *testing.T) {
	for name, tc := range map[string]struct {
		before, after *resourcev1.ResourceClaim
		initial, want bool
	}{
		"new":              {nil, claim(), false, true},
		"there at a start": {nil, claim(), true, false}, // its pods are there too
		"gone":             {claim(), nil, false, true},
		"its allocation":   {claim(), claim(tolerate("a")), false, true},
		"its reservations": {claim(), change(claim(), func(c *resourcev1.ResourceClaim) { c.Status.ReservedFor = nil }), false, true},
		"replaced":         {claim(), change(claim(), func(c *resourcev1.ResourceClaim) { c.UID = "other" }), false, true},
		"anything else":    {claim(), change(claim(), func(c *resourcev1.ResourceClaim) { c.Labels = map[string]string{"a": "b"} }), false, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, pod("p"))
			woken := wakes[key]{}
			r.wakeForClaim(runner.Change[resourcev1.ResourceClaim]{Old: tc.before, New: tc.after, Initial: tc.initial}, woken)
			if woken[theKey] != tc.want {
				t.Errorf("woken: %v", woken)
			}
		})
	}
}

func TestWhatWakesThePodsOfASlice(t *testing.T) {
	tainted, clean := slice("s", 1, device("x", broken("a"))), slice("s", 1, device("x"))
	newer := change(clean, func(s *resourcev1.ResourceSlice) { s.ResourceVersion = "2" })
	for name, tc := range map[string]struct {
		cached        *resourcev1.ResourceSlice
		before, after *resourcev1.ResourceSlice
		initial, want bool
	}{
		"a taint comes":                             {nil, clean, change(tainted, func(s *resourcev1.ResourceSlice) { s.ResourceVersion = "2" }), false, true},
		"a taint goes":                              {nil, tainted, newer, false, true},
		"a tainted slice goes":                      {nil, tainted, nil, false, true},
		"a tainted slice comes":                     {nil, nil, tainted, false, true},
		"a tainted slice at a start":                {nil, nil, tainted, true, false}, // its pods are there too
		"a resync":                                  {tainted, tainted, tainted, false, false},
		"no taint in the pool":                      {nil, clean, newer, false, false},
		"a newer generation of a pool with a taint": {slice("old", 0, device("x", broken("a"))), nil, clean, false, true},
		"a slice moves to another pool":             {nil, tainted, change(newer, func(s *resourcev1.ResourceSlice) { s.Spec.Pool.Name = "q" }), false, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, pod("p"), claim())
			if tc.cached != nil {
				r.Cache(t, tc.cached)
			}
			woken := wakes[key]{}
			r.wakeForSlice(runner.Change[resourcev1.ResourceSlice]{Old: tc.before, New: tc.after, Initial: tc.initial}, woken)
			if woken[theKey] != tc.want {
				t.Errorf("woken: %v", woken)
			}
		})
	}
}

func TestWhatWakesARule(t *testing.T) {
	a := rule("r", "*/*/*", "None")
	for name, tc := range map[string]struct {
		before, after *resourcev1beta2.DeviceTaintRule
		want          bool
	}{
		"new":        {nil, a, true},
		"gone":       {a, nil, true},
		"its status": {a, change(a, func(r *resourcev1beta2.DeviceTaintRule) { r.ResourceVersion = "2" }), false},
		"its spec":   {a, change(a, func(r *resourcev1beta2.DeviceTaintRule) { r.Generation = 2 }), true},
		"replaced":   {a, change(a, func(r *resourcev1beta2.DeviceTaintRule) { r.UID = "other" }), true},
	} {
		t.Run(name, func(t *testing.T) {
			woken := wakes[string]{}
			wakeRule(runner.Change[resourcev1beta2.DeviceTaintRule]{Old: tc.before, New: tc.after}, woken)
			if woken["r"] != tc.want {
				t.Errorf("woken: %v", woken)
			}
		})
	}
}

// TestWhatARuleReportsLater: a pod that comes, waits or goes for a rule changes its report.
func TestWhatARuleReportsLater(t *testing.T) {
	m := newMemory()
	for _, r := range []ruleID{{"r1", "u1"}, {"r2", "u2"}} {
		m.looked(r.name, r.uid, 1)
	}
	for i, tc := range []struct {
		a    *appointment
		want string
	}{
		{&appointment{uid: "p"}, ""},
		{&appointment{uid: "p", rules: []ruleID{{"r1", "u1"}}}, "r1"},
		{&appointment{uid: "p", rules: []ruleID{{"r1", "u1"}}, announced: true}, ""},
		{&appointment{uid: "p", rules: []ruleID{{"r2", "u2"}}}, "r1 r2"},
		{&appointment{uid: "p", rules: []ruleID{{"r2", "u2"}}, leaving: true}, "r2"},
		{&appointment{uid: "p", rules: []ruleID{{"r2", "u2"}}, evicted: true, counted: true}, "r2"},
		{&appointment{uid: "p", rules: []ruleID{{"r2", "u2"}}, evicted: true, counted: true}, ""},
		{nil, "r2"},
		{nil, ""},
	} {
		got := ""
		for _, name := range m.book(theKey, tc.a) {
			if got != "" {
				got += " "
			}
			got += name
		}
		if got != tc.want {
			t.Errorf("step %d: reports of %q change, want %q", i, got, tc.want)
		}
	}
	if r, _ := m.reportOf("r2"); r.evicted != 1 || r.uid != "u2" {
		t.Errorf("report %+v", r)
	}
}
