package podautoscaler

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

const (
	mostOf  = autoscalingv2.MaxChangePolicySelect
	leastOf = autoscalingv2.MinChangePolicySelect
	neverOf = autoscalingv2.DisabledPolicySelect
)

// follow asks for the same number again and again, at fixed times, and returns
// the numbers there were.
func follow(current, desired int32, b *autoscalingv2.HorizontalPodAutoscalerBehavior, every time.Duration, steps int) []int32 {
	h := history{}.begun(current, noon.Add(-time.Hour))
	var seen []int32
	for i := range steps {
		now := noon.Add(time.Duration(i) * every)
		l := limit(bounds{current, desired, 1, 1000}, b, h, 0, now)
		h = l.history.scaled(current, l.replicas, b, now)
		current = l.replicas
		seen = append(seen, current)
	}
	return seen
}

// The examples of the documentation, "Configurable scaling behavior".
func TestDocumentedBehaviors(t *testing.T) {
	down := func(r *autoscalingv2.HPAScalingRules) *autoscalingv2.HorizontalPodAutoscalerBehavior {
		return &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: r}
	}
	up := func(r *autoscalingv2.HPAScalingRules) *autoscalingv2.HorizontalPodAutoscalerBehavior {
		return &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: r}
	}
	for name, tc := range map[string]struct {
		behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
		from, to int32
		every    time.Duration
		want     []int32
	}{
		"4 pods or 10 percent a minute, from 80 to 10": {down(ruled(0, mostOf, podsPer(4, 60), percent(10, 60))), 80, 10, time.Minute,
			[]int32{72, 64, 57, 51, 45, 40, 36, 32, 28, 24, 20, 16, 12, 10}},
		"10 percent a minute":                      {down(ruled(0, mostOf, percent(10, 60))), 80, 60, time.Minute, []int32{72, 64, 60}},
		"the smaller of 10 percent and 5 pods":     {down(ruled(0, leastOf, percent(10, 60), podsPer(5, 60))), 80, 1, time.Minute, []int32{75, 70, 65}},
		"never down":                               {down(ruled(0, neverOf, percent(100, 15))), 80, 1, time.Minute, []int32{80, 80}},
		"the default rate down":                    {down(nil), 80, 10, 15 * time.Second, []int32{10}},
		"the default rate up":                      {up(nil), 1, 100, 15 * time.Second, []int32{5, 10, 20, 40, 80, 100}},
		"900 percent a minute":                     {up(ruled(0, mostOf, percent(900, 60))), 1, 1000, time.Minute, []int32{10, 100, 1000}},
		"a pod in ten minutes":                     {up(ruled(0, mostOf, podsPer(1, 600))), 1, 5, time.Minute, []int32{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3}},
		"within the period the rest of the policy": {up(ruled(0, mostOf, podsPer(4, 60))), 1, 100, 20 * time.Second, []int32{5, 5, 5, 9, 9, 9, 13}},
		"never up":                                 {up(ruled(0, neverOf)), 2, 5, time.Minute, []int32{2, 2}},
		"without behavior, double or four":         {nil, 1, 100, time.Minute, []int32{4, 8, 16, 32, 64, 100}},
		"without behavior, down at once":           {nil, 80, 10, time.Minute, []int32{10}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, follow(tc.from, tc.to, tc.behavior, tc.every, len(tc.want))); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWithoutAWindowNothingIsHeldUp(t *testing.T) {
	for window, want := range map[time.Duration]limited{
		0:           {replicas: 2, able: readyForNewScale},
		time.Second: {replicas: 5, able: downStabilized},
	} {
		h := history{}.begun(5, noon)
		got := limit(bounds{current: 5, desired: 2, lowest: 1, highest: 9}, nil, h, window, noon)
		if got.replicas != want.replicas || got.able != want.able {
			t.Errorf("window of %v: %d, %v", window, got.replicas, got.able)
		}
	}
}

func TestStabilization(t *testing.T) {
	ago := func(seconds int, n int32) recommendation {
		return recommendation{n, noon.Add(-time.Duration(seconds) * time.Second)}
	}
	for name, tc := range map[string]struct {
		current, desired int32
		before           []recommendation
		up, down         time.Duration
		want             int32
	}{
		"nothing before":                         {5, 7, nil, time.Minute, time.Minute, 7},
		"up waits for the lowest of the window":  {5, 9, []recommendation{ago(10, 7), ago(50, 6)}, time.Minute, 0, 6},
		"up stays when one asked for less":       {5, 9, []recommendation{ago(10, 4)}, time.Minute, 0, 5},
		"what is older has no say":               {5, 9, []recommendation{ago(70, 4)}, time.Minute, 0, 9},
		"down to the highest of the window":      {5, 1, []recommendation{ago(10, 3), ago(50, 4)}, 0, time.Minute, 4},
		"down stays when one asked for more":     {5, 1, []recommendation{ago(10, 8)}, 0, time.Minute, 5},
		"no window goes up at once":              {5, 9, []recommendation{ago(0, 2)}, 0, time.Minute, 9},
		"between the two windows nothing is due": {5, 5, []recommendation{ago(10, 2), ago(10, 9)}, time.Minute, time.Minute, 5},
	} {
		t.Run(name, func(t *testing.T) {
			if got := stabilized(tc.current, tc.desired, tc.before, tc.up, tc.down, noon); got != tc.want {
				t.Errorf("got %d, want %d", got, tc.want)
			}
		})
	}
}

func TestWhatLimits(t *testing.T) {
	ruledUp := &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: ruled(60, mostOf, podsPer(2, 60))}
	ruledDown := &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: ruled(0, mostOf, podsPer(2, 60))}
	slowUp := &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: ruled(60, mostOf, podsPer(4, 60))}
	slowDown := &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleDown: ruled(0, mostOf, podsPer(4, 60))}
	unruled := &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: &autoscalingv2.HPAScalingRules{}}
	early, late := noon.Add(-30*time.Second), noon.Add(-20*time.Second)
	grown := history{}.scaled(3, 4, slowUp, early).scaled(4, 5, slowUp, late)
	shrunk := history{}.scaled(9, 8, slowDown, early).scaled(8, 7, slowDown, late)
	// An old change gives way to a new one of its direction, one for one; the policies of the
	// other direction count the rest.
	bothWays := func(up, down autoscalingv2.HPAScalingPolicy) *autoscalingv2.HorizontalPodAutoscalerBehavior {
		return &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: ruled(0, mostOf, up), ScaleDown: ruled(0, mostOf, down)}
	}
	longDown, longUp := bothWays(podsPer(20, 60), podsPer(5, 600)), bothWays(podsPer(4, 300), podsPer(5, 60))
	changed := func(b *autoscalingv2.HorizontalPodAutoscalerBehavior, numbers ...int32) (h history) {
		for i, before := range []time.Duration{135 * time.Second, 120 * time.Second, 15 * time.Second} {
			h = h.scaled(numbers[i], numbers[i+1], b, noon.Add(-before))
		}
		return h
	}
	before := func(n int32) history {
		return history{recommendations: []recommendation{{n, noon.Add(-30 * time.Second)}}}
	}
	for name, tc := range map[string]struct {
		b        bounds
		behavior *autoscalingv2.HorizontalPodAutoscalerBehavior
		h        history
		want     int32
		able     conditionState
		limiting conditionState
	}{
		"nothing":                                                {bounds{3, 5, 1, 10}, nil, history{}, 5, readyForNewScale, withinRange},
		"the highest number":                                     {bounds{6, 50, 1, 10}, nil, history{}, 10, readyForNewScale, tooMany},
		"the lowest number":                                      {bounds{6, 1, 2, 10}, nil, history{}, 2, readyForNewScale, tooFew},
		"how fast it grows":                                      {bounds{3, 50, 1, 10}, nil, history{}, 6, readyForNewScale, growsFast},
		"a higher recommendation":                                {bounds{6, 1, 1, 10}, nil, before(4), 4, downStabilized, withinRange},
		"a policy up":                                            {bounds{3, 9, 1, 10}, ruledUp, history{}, 5, readyForNewScale, growsFast},
		"a lower recommendation":                                 {bounds{3, 9, 1, 10}, ruledUp, before(4), 4, upStabilized, withinRange},
		"a policy down":                                          {bounds{9, 3, 1, 10}, ruledDown, history{}, 7, readyForNewScale, decreaseFast},
		"the highest number, with policies":                      {bounds{9, 50, 1, 10}, ruledUp, history{}, 10, readyForNewScale, tooMany},
		"the lowest number, with policies":                       {bounds{3, 0, 2, 10}, ruledDown, history{}, 2, readyForNewScale, tooFew},
		"the highest number is as far as it grows":               {bounds{5, 50, 1, 10}, nil, history{}, 10, readyForNewScale, tooMany},
		"the highest number is as far as a policy goes":          {bounds{8, 50, 1, 10}, ruledUp, history{}, 10, readyForNewScale, tooMany},
		"the lowest number is as far as a policy goes":           {bounds{4, 0, 2, 10}, ruledDown, history{}, 2, readyForNewScale, tooFew},
		"no more than a policy allows":                           {bounds{3, 5, 1, 10}, ruledUp, history{}, 5, readyForNewScale, withinRange},
		"no less than a policy allows":                           {bounds{9, 7, 1, 10}, ruledDown, history{}, 7, readyForNewScale, withinRange},
		"a policy up counts what was added in its period":        {bounds{5, 9, 1, 10}, slowUp, grown, 7, readyForNewScale, growsFast},
		"a policy down counts what was taken in its period":      {bounds{7, 1, 1, 10}, slowDown, shrunk, 5, readyForNewScale, decreaseFast},
		"a policy down counts what was added in its own period":  {bounds{35, 1, 1, 100}, longDown, changed(longDown, 10, 20, 30, 35), 15, readyForNewScale, decreaseFast},
		"a policy up counts what was taken in its own period":    {bounds{4, 50, 1, 100}, longUp, changed(longUp, 10, 7, 5, 4), 12, readyForNewScale, growsFast},
		"rules without policies leave those that there are else": {bounds{3, 50, 1, 10}, unruled, history{}, 7, readyForNewScale, growsFast},
		"the given window of all":                                {bounds{6, 1, 1, 10}, &autoscalingv2.HorizontalPodAutoscalerBehavior{}, before(5), 5, downStabilized, withinRange},
	} {
		t.Run(name, func(t *testing.T) {
			l := limit(tc.b, tc.behavior, tc.h, time.Minute, noon)
			if l.replicas != tc.want || l.able != tc.able || l.limiting != tc.limiting {
				t.Errorf("got %d, %v, %v", l.replicas, l.able, l.limiting)
			}
		})
	}
}

// anyBehavior is one that the API server would take.
func anyBehavior(r *rand.Rand) *autoscalingv2.HorizontalPodAutoscalerBehavior {
	direction := func() *autoscalingv2.HPAScalingRules {
		if r.IntN(4) == 0 {
			return nil
		}
		rules := ruled(r.Int32N(3600), []autoscalingv2.ScalingPolicySelect{mostOf, leastOf, neverOf}[r.IntN(3)])
		for range r.IntN(4) {
			rules.Policies = append(rules.Policies, []autoscalingv2.HPAScalingPolicy{percent(1+r.Int32N(2000), 1+r.Int32N(1800)), podsPer(1+r.Int32(), 1+r.Int32N(1800))}[r.IntN(2)])
		}
		return rules
	}
	if r.IntN(4) == 0 {
		return nil
	}
	return &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: direction(), ScaleDown: direction()}
}

// Whatever metrics ask for, and whatever somebody else does to the number: it
// stays within the bounds, and does not go the other way.
func TestTheNumberStaysWithinItsBounds(t *testing.T) {
	for seed := range testworld.Seeds(t, 300) {
		r := rand.New(rand.NewPCG(seed, seed))
		behavior, h, now := anyBehavior(r), history{}, noon
		least := 1 + r.Int32N(10)
		most := least + r.Int32N(1<<uint(1+r.IntN(30)))
		current := least
		for range 200 {
			now = now.Add(time.Duration(r.IntN(60_000)) * time.Millisecond)
			if r.IntN(10) == 0 { // somebody else scales it
				current = least + r.Int32N(most-least+1)
			}
			desired := r.Int32N(1 << uint(1+r.IntN(30)))
			h = h.begun(current, now)
			l := limit(bounds{current, desired, least, most}, behavior, h, 5*time.Minute, now)
			if l.replicas < least || l.replicas > most {
				t.Fatalf("seed %d: %d is outside of %d to %d", seed, l.replicas, least, most)
			}
			wanted := append([]int32{desired}, recommended(h)...)
			if l.replicas > current && l.replicas > max(slices.Max(wanted), least) || l.replicas < current && l.replicas < max(min(slices.Min(wanted), most), least) {
				t.Fatalf("seed %d: %d to %d, where %d was asked for", seed, current, l.replicas, desired)
			}
			if behavior != nil && forbidden(behavior, current, l.replicas) {
				t.Fatalf("seed %d: %d to %d, which is disabled", seed, current, l.replicas)
			}
			h = l.history.scaled(current, l.replicas, behavior, now)
			if len(h.recommendations) > 3600 {
				t.Fatalf("seed %d: %d recommendations are remembered", seed, len(h.recommendations))
			}
			current = l.replicas
		}
	}
}

func recommended(h history) []int32 {
	var all []int32
	for _, r := range h.recommendations {
		all = append(all, r.replicas)
	}
	return all
}

func forbidden(b *autoscalingv2.HorizontalPodAutoscalerBehavior, from, to int32) bool {
	off := func(rules *autoscalingv2.HPAScalingRules) bool {
		return rules != nil && rules.SelectPolicy != nil && *rules.SelectPolicy == autoscalingv2.DisabledPolicySelect
	}
	return to > from && off(b.ScaleUp) || to < from && off(b.ScaleDown)
}

func FuzzPolicies(f *testing.F) {
	f.Add(int32(1), int32(100), int32(100), int32(15), int32(3), int32(2), true)
	f.Add(int32(2147483647), int32(2147483647), int32(2147483647), int32(1800), int32(1), int32(1), false)
	f.Fuzz(func(t *testing.T, current, value, desired, period, added, removed int32, byPercent bool) {
		if current < 1 || value < 1 || desired < 0 || period < 1 || added < 0 || removed < 0 {
			return
		}
		one := podsPer(value, period)
		if byPercent {
			one = percent(value, period)
		}
		h := history{ups: []change{{added, noon}}, downs: []change{{removed, noon}}}
		b := &autoscalingv2.HorizontalPodAutoscalerBehavior{ScaleUp: ruled(0, mostOf, one), ScaleDown: ruled(0, mostOf, one)}
		l := limit(bounds{current, desired, 1, 1<<31 - 1}, b, h, 0, noon)
		if l.replicas < 1 || desired > current && l.replicas < current || desired < current && l.replicas > current {
			t.Errorf("%d of %d became %d", desired, current, l.replicas)
		}
	})
}

// A window that is made shorter and longer again asks about what came before.
func TestAShorterWindowForgetsOneByOne(t *testing.T) {
	var h history
	for _, ago := range []int{60, 45, 30} {
		h.recommendations = append(h.recommendations, recommendation{20, noon.Add(-time.Duration(ago) * time.Second)})
	}
	if h = h.recommended(4, 0, noon); len(h.recommendations) != 3 {
		t.Fatalf("it has %v", h.recommendations)
	}
	if h = h.recommended(4, 5*time.Minute, noon.Add(15*time.Second)); len(h.recommendations) != 4 {
		t.Errorf("it has %v", h.recommendations)
	}
	highest := int32(0)
	for _, r := range h.recommendations {
		highest = max(highest, r.replicas)
	}
	if highest != 20 {
		t.Errorf("the highest is %d", highest)
	}
}
