package nodelifecycle

import (
	"fmt"
	"math"
	"testing"
	"time"
)

var defaults = rates{primary: 0.1, secondary: 0.01, large: 50, threshold: 0.55}

func TestZoneState(t *testing.T) {
	for name, tc := range map[string]struct {
		ready, notReady int
		want            zoneState
	}{
		"all ready":                       {3, 0, stateNormal},
		"one of two":                      {1, 1, stateNormal},
		"two not ready are never partial": {1, 2, stateNormal},
		"three of five":                   {2, 3, statePartial},
		"just below the threshold":        {46, 54, stateNormal},
		"at the threshold":                {45, 55, statePartial},
		"nobody ready":                    {0, 1, stateFull},
		"no nodes":                        {0, 0, stateNormal},
	} {
		t.Run(name, func(t *testing.T) {
			if got := defaults.stateOf(tc.ready, tc.notReady); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestRates(t *testing.T) {
	for name, tc := range map[string]struct {
		state zoneState
		size  int
		want  float32
	}{
		"normal":                       {stateNormal, 5, 0.1},
		"partial and small":            {statePartial, 50, 0},
		"partial and large":            {statePartial, 51, 0.01},
		"full, while others are ready": {stateFull, 5, 0.1},
		"full and large, others ready": {stateFull, 500, 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			if got := defaults.of(tc.state, tc.size); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	type in struct {
		state           zoneState
		rate            float32
		ready, notReady int
	}
	type out struct {
		state zoneState
		rate  float32
	}
	for name, tc := range map[string]struct {
		zones  []in
		want   []out
		change disruption
	}{
		"zones start normal": {
			[]in{{stateInitial, 0.1, 2, 0}, {stateInitial, 0.1, 1, 1}}, []out{{stateNormal, 0.1}, {stateNormal, 0.1}}, unchanged},
		"one zone is lost, its rate stays": {
			[]in{{stateNormal, 0.1, 0, 3}, {stateNormal, 0.1, 2, 0}}, []out{{stateFull, 0.1}, {stateNormal, 0.1}}, unchanged},
		"one zone is lost in part": {
			[]in{{stateNormal, 0.1, 1, 3}, {stateNormal, 0.1, 2, 0}}, []out{{statePartial, 0}, {stateNormal, 0.1}}, unchanged},
		"all zones are lost": {
			[]in{{stateFull, 0.1, 0, 3}, {stateNormal, 0.1, 0, 2}}, []out{{stateFull, 0}, {stateFull, 0}}, entered},
		"all zones are lost when the process starts": {
			[]in{{stateInitial, 0.1, 0, 3}}, []out{{stateFull, 0}}, entered},
		"all zones are still lost": {
			[]in{{stateFull, 0, 0, 3}, {stateFull, 0, 0, 2}}, []out{{stateFull, 0}, {stateFull, 0}}, unchanged},
		"a new zone without a ready node joins the disruption": {
			[]in{{stateFull, 0, 0, 3}, {stateInitial, 0.1, 0, 2}}, []out{{stateFull, 0}, {stateFull, 0}}, unchanged},
		"one node returns: all zones go on at their rates": {
			[]in{{stateFull, 0, 0, 3}, {stateFull, 0, 1, 3}, {stateFull, 0, 1, 1}},
			[]out{{stateFull, 0.1}, {statePartial, 0}, {stateNormal, 0.1}}, left},
		"a new zone with a ready node ends the disruption": {
			[]in{{stateFull, 0, 0, 3}, {stateInitial, 0.1, 2, 0}}, []out{{stateFull, 0.1}, {stateNormal, 0.1}}, left},
		"a zone without nodes to judge by has no say": {
			[]in{{stateFull, 0.1, 0, 3}, {stateNormal, 0.1, 0, 0}}, []out{{stateFull, 0}, {stateInitial, 0.1}}, unchanged},
		"no nodes at all": {
			[]in{{stateFull, 0, 0, 0}}, []out{{stateInitial, 0.1}}, unchanged},
	} {
		t.Run(name, func(t *testing.T) {
			zones := map[string]*zone{}
			for i, z := range tc.zones {
				zones[fmt.Sprint(i)] = &zone{state: z.state, evictions: newEvictions(z.rate), ready: z.ready, notReady: z.notReady, members: 1}
			}
			if got, _ := moveZones(zones, defaults, noon); got != tc.change {
				t.Errorf("change: got %q, want %q", got, tc.change)
			}
			for i, want := range tc.want {
				if z := zones[fmt.Sprint(i)]; (out{z.state, z.evictions.rate}) != want {
					t.Errorf("zone %d: got %s at %v, want %+v", i, z.state, z.evictions.rate, want)
				}
			}
		})
	}
}

func TestEvictions(t *testing.T) {
	e := newEvictions(0.1)
	for _, n := range []string{"a", "b", "c", "b", "d", "e"} {
		e.add(n)
	}
	e.remove("c")
	expect := func(at time.Duration, want string) {
		t.Helper()
		if got, _ := e.take(noon.Add(at)); got != want {
			t.Errorf("at %s: got %q, want %q", at, got, want)
		}
	}
	expect(0, "a")
	expect(0, "")
	if d, ok := e.wait(noon.Add(time.Second)); !ok || d != 9*time.Second {
		t.Errorf("wait: %s %v", d, ok)
	}
	expect(9*time.Second, "")
	expect(10*time.Second, "b")
	e.setRate(0, noon.Add(11*time.Second))
	expect(time.Hour, "")
	if _, ok := e.wait(noon); ok {
		t.Error("a rate of zero has nothing to wait for")
	}
	e.setRate(1, noon.Add(time.Hour))
	expect(time.Hour, "") // drained: nobody goes through at the moment of the change
	expect(time.Hour+time.Second, "d")
	e.setRate(0.5, noon.Add(time.Hour+1100*time.Millisecond))
	expect(time.Hour+3*time.Second, "")
	expect(time.Hour+3100*time.Millisecond, "e")
	e.setRate(1, noon.Add(2*time.Hour)) // had a token: keeps it
	e.add("a")
	expect(2*time.Hour, "a")
	expect(3*time.Hour, "")
	if _, ok := e.wait(noon); ok {
		t.Error("nobody waits")
	}
}

func TestEvictionsDoNotGrowWhileNobodyIsLetThrough(t *testing.T) {
	e := newEvictions(0)
	for range 1000 {
		for _, n := range []string{"a", "b"} {
			e.remove(n)
			e.add(n)
		}
	}
	if e.line.Len() > 50 {
		t.Errorf("line of %d for 2 nodes", e.line.Len())
	}
	e.setRate(1, noon)
	for i, want := range []string{"a", "b", ""} {
		if got, _ := e.take(noon.Add(time.Duration(i+1) * time.Second)); got != want {
			t.Errorf("number %d in line is %q, want %q", i, got, want)
		}
	}
}

// The time between two tokens can be more than a duration can be.
func TestTheSmallestRatesLetOneNodeThrough(t *testing.T) {
	const century = 100 * 365 * 24 * time.Hour
	for _, rate := range []float32{1.2e-10, 1e-10, 1e-30, math.SmallestNonzeroFloat32} {
		t.Run(fmt.Sprint(rate), func(t *testing.T) {
			e := newEvictions(rate)
			for _, n := range []string{"a", "b", "c"} {
				e.add(n)
			}
			for i, want := range []string{"a", "", ""} {
				if got, _ := e.take(noon.Add(time.Duration(i) * century)); got != want {
					t.Errorf("at token %d: got %q, want %q", i, got, want)
				}
			}
			if d, more := e.wait(noon); !more || d < century {
				t.Errorf("the next one waits %s, %v", d, more)
			}
			e.setRate(0, noon)
			if e.setRate(rate, noon); !noon.Before(e.ready) {
				t.Error("who waited has a token when the rate changes")
			}
		})
	}
}
