package devicetainteviction

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// broken is a NoExecute taint that was added at noon.
func broken(key string) resourcev1.DeviceTaint {
	return resourcev1.DeviceTaint{Key: key, Value: "1", Effect: resourcev1.DeviceTaintEffectNoExecute, TimeAdded: &metav1.Time{Time: noon}}
}

func tolerate(key string) resourcev1.DeviceToleration {
	return resourcev1.DeviceToleration{Key: key, Operator: resourcev1.DeviceTolerationOpExists, Effect: resourcev1.DeviceTaintEffectNoExecute}
}

func tolerateFor(key string, seconds int64) resourcev1.DeviceToleration {
	t := tolerate(key)
	t.TolerationSeconds = &seconds
	return t
}

func TestTolerance(t *testing.T) {
	type tolerations = []resourcev1.DeviceToleration
	for name, tc := range map[string]struct {
		tolerations tolerations
		want        time.Duration
	}{
		"no toleration":                           {nil, untolerated},
		"no seconds have no end":                  {tolerations{tolerate("a")}, endless},
		"an empty key matches all keys":           {tolerations{tolerate("")}, endless},
		"another key does not match":              {tolerations{tolerate("b")}, untolerated},
		"the same value matches":                  {tolerations{{Key: "a", Value: "1", Operator: "Equal", Effect: "NoExecute"}}, endless},
		"no operator is that of equal values":     {tolerations{{Key: "a", Value: "1", Effect: "NoExecute"}}, endless},
		"another value does not match":            {tolerations{{Key: "a", Value: "2", Operator: "Equal", Effect: "NoExecute"}}, untolerated},
		"an operator nobody knows does not match": {tolerations{{Key: "a", Operator: "Like", Effect: "NoExecute"}}, untolerated},
		"another effect does not match":           {tolerations{{Key: "a", Operator: "Exists", Effect: "NoSchedule"}}, untolerated},
		"an empty effect matches all effects":     {tolerations{{Key: "a", Operator: "Exists"}}, endless},
		"a time":                                  {tolerations{tolerateFor("a", 9)}, 9 * time.Second},
		"the shortest time counts":                {tolerations{tolerateFor("a", 9), tolerateFor("", 5), tolerateFor("a", 7)}, 5 * time.Second},
		"the time of another taint does not":      {tolerations{tolerateFor("a", 9), tolerateFor("b", 5)}, 9 * time.Second},
		"no end is longer than any time":          {tolerations{tolerateFor("a", 9), tolerate("a")}, endless},
		"zero seconds are none":                   {tolerations{tolerateFor("a", 0)}, 0},
		"zero seconds are the shortest":           {tolerations{tolerateFor("a", 0), tolerateFor("a", 3)}, 0},
		"less than zero seconds are none":         {tolerations{tolerateFor("a", -7)}, 0},
		"seconds beyond all time do not overflow": {tolerations{tolerateFor("a", 1<<62)}, math.MaxInt64},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tolerance(broken("a"), tc.tolerations); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

// slice is one of the pool "d/p", with these devices and their taints.
func slice(name string, generation int64, devices ...resourcev1.Device) *resourcev1.ResourceSlice {
	s := &resourcev1.ResourceSlice{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-slice", ResourceVersion: "1"}}
	s.Spec.Driver, s.Spec.Pool = "d", resourcev1.ResourcePool{Name: "p", Generation: generation, ResourceSliceCount: 1}
	s.Spec.Devices = devices
	return s
}

func device(name string, taints ...resourcev1.DeviceTaint) resourcev1.Device {
	return resourcev1.Device{Name: name, Taints: taints}
}

func TestSliceTaints(t *testing.T) {
	soft, info, odd := broken("s"), broken("n"), broken("o")
	soft.Effect, info.Effect, odd.Effect = resourcev1.DeviceTaintEffectNoSchedule, resourcev1.DeviceTaintEffectNone, "Later"
	type pool = []*resourcev1.ResourceSlice
	for name, tc := range map[string]struct {
		pool pool
		want string
	}{
		"no slice":                                     {nil, ""},
		"a device without taints":                      {pool{slice("a", 1, device("x"))}, ""},
		"a device with taints":                         {pool{slice("a", 1, device("x", broken("a"), broken("b")))}, "a b"},
		"another device":                               {pool{slice("a", 1, device("y", broken("a")))}, ""},
		"only NoExecute counts":                        {pool{slice("a", 1, device("x", soft, info, odd))}, ""},
		"an old generation does not count":             {pool{slice("a", 1, device("x", broken("a"))), slice("b", 2, device("x"))}, ""},
		"the newest counts, in any order":              {pool{slice("b", 2, device("x", broken("b"))), slice("a", 1, device("x", broken("a")))}, "b"},
		"a device that the newest does not have":       {pool{slice("a", 1, device("x", broken("a"))), slice("b", 2, device("y"))}, ""},
		"slices of one generation count together":      {pool{slice("a", 3, device("y")), slice("b", 3, device("x", broken("b")))}, "b"},
		"a generation that is not complete counts too": {pool{incomplete(slice("b", 2, device("x", broken("b"))))}, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			before := slices.Clone(tc.pool)
			var got []string
			for _, one := range sliceTaints(tc.pool, "x") {
				got = append(got, one.Key)
			}
			if strings.Join(got, " ") != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if !slices.Equal(before, tc.pool) {
				t.Error("the list was changed")
			}
		})
	}
}

func incomplete(s *resourcev1.ResourceSlice) *resourcev1.ResourceSlice {
	s.Spec.Pool.ResourceSliceCount = 2
	return s
}

// rule puts the taint "r" on the devices that its selector, written as driver/pool/device,
// selects. A star is any; an empty text is no selector.
func rule(name, selector string, effect resourcev1beta2.DeviceTaintEffect) *resourcev1beta2.DeviceTaintRule {
	r := &resourcev1beta2.DeviceTaintRule{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid-rule", Generation: 1, ResourceVersion: "1"}}
	r.Spec.Taint = resourcev1beta2.DeviceTaint{Key: "r", Effect: effect, TimeAdded: &metav1.Time{Time: noon}}
	if selector == "" {
		return r
	}
	r.Spec.DeviceSelector = &resourcev1beta2.DeviceTaintSelector{}
	for i, part := range strings.Split(selector, "/") {
		if part != "*" {
			*[]**string{&r.Spec.DeviceSelector.Driver, &r.Spec.DeviceSelector.Pool, &r.Spec.DeviceSelector.Device}[i] = &part
		}
	}
	return r
}

func TestSelects(t *testing.T) {
	for selector, want := range map[string]bool{
		"": false, "*/*/*": true, "d/*/*": true, "*/p/*": true, "*/*/x": true, "d/p/x": true,
		"e/*/*": false, "*/q/*": false, "*/*/y": false, "d/p/y": false, "e/p/x": false,
	} {
		if got := selects(rule("r", selector, "NoExecute"), "d", "p", "x"); got != want {
			t.Errorf("%q selects: %t", selector, got)
		}
	}
	pools := []string{"d/p", "d/q/with/slashes", "e/p"}
	for selector, want := range map[string]string{
		"": "", "*/*/*": "d/p d/q/with/slashes e/p", "d/*/*": "d/p d/q/with/slashes", "*/p/x": "d/p e/p", "d/p/x": "d/p", "f/*/*": "",
	} {
		if got := strings.Join(poolsOf(rule("r", selector, "NoExecute"), pools), " "); got != want {
			t.Errorf("%q may be about %q", selector, got)
		}
	}
}

func TestJudge(t *testing.T) {
	of := func(rule string, t resourcev1.DeviceTaint) taint { return taint{t, ruleID{rule, "u"}} }
	plain := func(t resourcev1.DeviceTaint) taint { return taint{DeviceTaint: t} }
	late, undated := broken("late"), broken("undated")
	late.TimeAdded, undated.TimeAdded = &metav1.Time{Time: noon.Add(time.Minute)}, nil
	type tolerations = []resourcev1.DeviceToleration
	for name, tc := range map[string]struct {
		devices []allocation
		goes    bool
		at      time.Duration // since noon
		rules   string
	}{
		"no device":             {nil, false, 0, ""},
		"no taint":              {[]allocation{{}}, false, 0, ""},
		"a taint":               {[]allocation{{taints: []taint{plain(broken("a"))}}}, true, 0, ""},
		"tolerated without end": {[]allocation{{tolerations: tolerations{tolerate("a")}, taints: []taint{plain(broken("a"))}}}, false, 0, ""},
		"tolerated for a time":  {[]allocation{{tolerations: tolerations{tolerateFor("a", 5)}, taints: []taint{plain(broken("a"))}}}, true, 5 * time.Second, ""},
		"since the taint was added": {
			[]allocation{{tolerations: tolerations{tolerateFor("", 5)}, taints: []taint{plain(late)}}}, true, 65 * time.Second, ""},
		"a taint of the future waits for its time": {[]allocation{{taints: []taint{plain(late)}}}, true, time.Minute, ""},
		"a taint without a time counts from when it was seen": {
			[]allocation{{tolerations: tolerations{tolerateFor("", 5)}, taints: []taint{plain(undated)}}}, true, 3605 * time.Second, ""},
		"the earliest of the taints": {
			[]allocation{{tolerations: tolerations{tolerateFor("a", 9), tolerateFor("b", 4)}, taints: []taint{plain(broken("a")), plain(broken("b"))}}}, true, 4 * time.Second, ""},
		"the earliest of the devices": {
			[]allocation{{tolerations: tolerations{tolerateFor("a", 9)}, taints: []taint{plain(broken("a"))}}, {tolerations: tolerations{tolerateFor("a", 3)}, taints: []taint{plain(broken("a"))}}},
			true, 3 * time.Second, ""},
		"the tolerations of one device are not those of another": {
			[]allocation{{tolerations: tolerations{tolerate("a")}}, {taints: []taint{plain(broken("a"))}}}, true, 0, ""},
		"every rule that is not tolerated without end, once": {
			[]allocation{{tolerations: tolerations{tolerateFor("a", 9), tolerate("b")}, taints: []taint{of("r1", broken("a")), of("r2", broken("b")), of("r3", broken("c")), of("r3", broken("d"))}}},
			true, 0, "r1 r3"},
	} {
		t.Run(name, func(t *testing.T) {
			v := deadlineOf(tc.devices, noon.Add(time.Hour))
			var rules []string
			for _, r := range v.rules {
				rules = append(rules, r.name)
			}
			if v.goes != tc.goes || v.goes && !v.at.Equal(noon.Add(tc.at)) || strings.Join(rules, " ") != tc.rules || v.why == "" {
				t.Errorf("got %+v", v)
			}
		})
	}
}
