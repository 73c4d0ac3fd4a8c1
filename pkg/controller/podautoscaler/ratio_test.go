package podautoscaler

import (
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func replaced(all []*corev1.Pod, i int, change ...func(*corev1.Pod)) []*corev1.Pod {
	all[i] = runningPod(fmt.Sprint("p", i), change...)
	return all
}

func TestAQuantityInThousandths(t *testing.T) {
	for text, want := range map[string]int64{
		"1500m": 1500, "0": 0, "-2": -2000, "9P": 9e18, "10P": math.MaxInt64, "1e16": math.MaxInt64, "10000000000000001": math.MaxInt64,
		"1u": 1, "-10P": math.MinInt64, "9223372036854775807m": math.MaxInt64, "9223372036854775806m": math.MaxInt64 - 1,
	} {
		q := resource.MustParse(text)
		if got := thousandths(&q); got != want {
			t.Errorf("%s: %d", text, got)
		}
	}
	for _, sum := range []struct{ a, b, want int64 }{{math.MaxInt64, 1, math.MaxInt64}, {math.MinInt64, -1, math.MinInt64}, {-3, 5, 2}} {
		if got := add(sum.a, sum.b); got != sum.want {
			t.Errorf("%d and %d: %d", sum.a, sum.b, got)
		}
	}
}

// The examples of the documentation, "Algorithm details", are the first three.
func TestReplicasByValue(t *testing.T) {
	young := started(time.Minute, 10*time.Second, corev1.ConditionFalse)
	for name, tc := range map[string]struct {
		current  int32
		target   int64
		of       corev1.ResourceName
		pods     []*corev1.Pod
		measured samples
		want     int32
		usage    int64
		err      error
	}{
		"200m where 100m is wanted doubles":                   {1, 100, "cpu", runningPods(1), measuredAt(200), 2, 200, nil},
		"50m where 100m is wanted halves":                     {2, 100, "cpu", runningPods(2), measuredAt(50, 50), 1, 50, nil},
		"a ratio near enough to 1 does nothing":               {3, 100, "cpu", runningPods(3), measuredAt(109, 109, 110), 3, 109, nil},
		"a number is rounded up":                              {3, 100, "cpu", runningPods(3), measuredAt(120, 120, 120), 4, 120, nil},
		"the tolerance itself is tolerated":                   {10, 100, "cpu", runningPods(10), measuredAt(110, 110, 110, 110, 110, 110, 110, 110, 110, 110), 10, 110, nil},
		"without pods":                                        {1, 100, "cpu", nil, measuredAt(1), 0, 0, errNoPods},
		"without a pod that counts":                           {1, 100, "cpu", replaced(runningPods(1), 0, young), measuredAt(200), 0, 0, errNoneReady},
		"a missing pod damps a shrinking: it uses the target": {4, 100, "cpu", runningPods(4), measuredAt(20, 20, 20, -1), 2, 20, nil},
		"a missing pod damps growth: it uses nothing":         {3, 100, "cpu", runningPods(3), measuredAt(180, 180, -1), 4, 180, nil},
		"missing pods do not turn growth into shrinking":      {5, 100, "cpu", runningPods(5), measuredAt(150, -1, -1, -1, -1), 5, 150, nil},
		"a starting pod damps growth":                         {2, 100, "cpu", replaced(runningPods(2), 1, young), measuredAt(300, 900), 3, 300, nil},
		"a starting pod has no part in shrinking":             {2, 100, "cpu", replaced(runningPods(2), 1, young), measuredAt(20, 900), 1, 20, nil},
		"a pending pod damps growth":                          {2, 100, "cpu", replaced(runningPods(2), 1, inPhase(corev1.PodPending)), measuredAt(150, -1), 2, 150, nil},
		"a starting pod counts where it is not about CPU":     {2, 100, "memory", replaced(runningPods(2), 1, young), measuredAt(100, 900), 10, 500, nil},
		"a failed pod has no part":                            {3, 100, "cpu", replaced(runningPods(3), 2, inPhase(corev1.PodFailed)), measuredAt(200, 200, 9000), 4, 200, nil},
		"a pod that is being deleted has no part":             {3, 100, "cpu", replaced(runningPods(3), 2, ending), measuredAt(200, 200, -1), 4, 200, nil},
		"missing and ready never shrink what grows":           {9, 100, "cpu", runningPods(2), measuredAt(120, 130), 3, 125, nil},
		// During a rollout there are more pods than replicas, or fewer.
		"more pods than replicas do not grow what shrinks":             {3, 100, "cpu", runningPods(5), measuredAt(60, 60, 60, 60, -1), 3, 60, nil},
		"fewer pods than replicas do not shrink what grows":            {9, 100, "cpu", runningPods(3), measuredAt(300, 300, -1), 9, 300, nil},
		"missing pods bring it near enough, whatever their number":     {6, 100, "cpu", runningPods(5), measuredAt(80, 80, -1, -1, -1), 6, 80, nil},
		"a starting pod has no part where the others do as they shall": {2, 100, "cpu", replaced(runningPods(2), 1, young), measuredAt(100, 900), 2, 100, nil},
		"a starting pod brings it near enough":                         {3, 100, "cpu", replaced(runningPods(3), 2, young), measuredAt(160, 160, 900), 3, 160, nil},
		"more than there can be is as many as there can be":            {1, 1, "cpu", runningPods(1), measuredAt(math.MaxInt64), math.MaxInt32, math.MaxInt64, nil},
		"a sum that runs over is as large as there can be":             {2, 1, "memory", runningPods(2), measuredAt(math.MaxInt64, math.MaxInt64), math.MaxInt32, math.MaxInt64 / 2, nil},
		"usage of nothing asks for no pods, and the bounds help":       {2, 100, "cpu", runningPods(2), measuredAt(0, 0), 0, 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			g := sortPods(tc.pods, tc.measured, tc.of, usual.timing, noon)
			n, usage, err := byValue(tc.current, tc.target, even, tc.pods, g)
			if n != tc.want || usage != tc.usage || !errors.Is(err, tc.err) {
				t.Errorf("got %d, %d, %v; want %d, %d, %v", n, usage, err, tc.want, tc.usage, tc.err)
			}
		})
	}
}

func TestReplicasByUtilization(t *testing.T) {
	for name, tc := range map[string]struct {
		current, target int32
		pods            []*corev1.Pod
		measured        samples
		want            int32
		percent         int32
		err             string
	}{
		"the double of what is wanted doubles":                  {3, 30, runningPods(3), measuredAt(600, 600, 600), 6, 60, ""},
		"unlike pods count by their sum":                        {3, 30, runningPods(3), measuredAt(300, 500, 700), 5, 50, ""},
		"less shrinks":                                          {5, 50, runningPods(5), measuredAt(100, 300, 500, 250, 250), 3, 28, ""},
		"within the tolerance":                                  {3, 100, runningPods(3), measuredAt(1010, 1030, 1020), 3, 102, ""},
		"a missing pod is at full use when shrinking":           {4, 50, runningPods(4), measuredAt(100, 100, 100, -1), 3, 10, ""},
		"a missing pod above its request is at the target then": {4, 300, runningPods(4), measuredAt(100, 100, 100, -1), 2, 10, ""},
		"a missing pod is idle when growing":                    {3, 50, runningPods(3), measuredAt(900, 900, -1), 4, 90, ""},
		"a missing pod has no part where the others are right":  {2, 50, runningPods(2), measuredAt(500, -1), 2, 50, ""},
		"metrics of unknown pods alone":                         {1, 50, runningPods(1), samples{"other": {value: 1}}, 0, 0, errNoRequests.Error()},
		"no request": {1, 50, replaced(runningPods(1), 0, func(p *corev1.Pod) { p.Spec.Containers[0].Resources.Requests = nil }), measuredAt(1), 0, 0,
			"missing request for cpu in container web of Pod p0"},
	} {
		t.Run(name, func(t *testing.T) {
			g := sortPods(tc.pods, tc.measured, corev1.ResourceCPU, usual.timing, noon)
			n, used, err := byUtilization(tc.current, tc.target, even, tc.pods, g, func() (map[string]int64, error) { return requests(tc.pods, corev1.ResourceCPU, "", true) })
			if n != tc.want || used.percent != tc.percent || fmt.Sprint(err) != fmt.Sprint(errorOf(tc.err)) {
				t.Errorf("got %d, %d%%, %v; want %d, %d%%, %q", n, used.percent, err, tc.want, tc.percent, tc.err)
			}
		})
	}
}

func TestTheAverageIsOfThePodsThatAreKnown(t *testing.T) {
	got, ok := utilized(measuredAt(100, 300, 900), map[string]int64{"p0": 1000, "p1": 3000, "p3": 1})
	if want := (utilization{percent: 10, average: 200}); got != want || !ok {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func errorOf(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

func TestWhichSamplesCount(t *testing.T) {
	type counts struct{ Ready, Unready, Missing, Known int }
	at := func(t time.Time) samples { return samples{"p": {value: 1, at: t, window: time.Minute}} }
	for name, tc := range map[string]struct {
		pod      *corev1.Pod
		measured samples
		want     counts
	}{
		"a pod that runs":                                  {runningPod("p"), at(noon), counts{1, 0, 0, 1}},
		"one without a sample":                             {runningPod("p"), nil, counts{0, 0, 1, 0}},
		"a young one that is not ready":                    {runningPod("p", started(time.Minute, 0, corev1.ConditionFalse)), at(noon), counts{0, 1, 0, 0}},
		"a young one, sampled before it was ready":         {runningPod("p", started(2*time.Minute, 90*time.Second, corev1.ConditionTrue)), at(noon), counts{0, 1, 0, 0}},
		"a young one, ready all the while":                 {runningPod("p", started(2*time.Minute, time.Minute, corev1.ConditionTrue)), at(noon), counts{1, 0, 0, 1}},
		"an old one that was never ready":                  {runningPod("p", started(time.Hour, 10*time.Second, corev1.ConditionFalse)), at(noon), counts{0, 1, 0, 0}},
		"an old one that is no longer ready":               {runningPod("p", started(time.Hour, 10*time.Minute, corev1.ConditionFalse)), at(noon), counts{1, 0, 0, 1}},
		"one that says nothing of readiness":               {runningPod("p", func(p *corev1.Pod) { p.Status.Conditions = nil }), at(noon), counts{0, 1, 0, 0}},
		"one that does not say when it began":              {runningPod("p", func(p *corev1.Pod) { p.Status.StartTime = nil }), at(noon), counts{0, 1, 0, 0}},
		"one that is pending":                              {runningPod("p", inPhase(corev1.PodPending)), at(noon), counts{0, 1, 0, 0}},
		"one that has failed":                              {runningPod("p", inPhase(corev1.PodFailed)), at(noon), counts{}},
		"one that is being deleted":                        {runningPod("p", ending), at(noon), counts{}},
		"one that has succeeded, with a sample of its end": {runningPod("p", inPhase(corev1.PodSucceeded)), at(noon), counts{1, 0, 0, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			g := sortPods([]*corev1.Pod{tc.pod}, tc.measured, corev1.ResourceCPU, usual.timing, noon)
			if d := cmp.Diff(tc.want, counts{g.ready, len(g.unready), len(g.missing), len(g.known)}); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestRequests(t *testing.T) {
	asks := func(name, cpu string) corev1.Container {
		c := corev1.Container{Name: name}
		if cpu != "" {
			c.Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
		}
		return c
	}
	sidecar := func(name, cpu string) corev1.Container {
		c := asks(name, cpu)
		c.RestartPolicy = ptr.To(corev1.ContainerRestartPolicyAlways)
		return c
	}
	of := func(cpu string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}
	}
	whole := func(resources string, quantity string) *corev1.ResourceRequirements {
		return &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceName(resources): resource.MustParse(quantity)}}
	}
	for name, tc := range map[string]struct {
		spec      corev1.PodSpec
		container string
		want      int64
		err       string
		gateOff   bool
	}{
		"all containers": {corev1.PodSpec{Containers: []corev1.Container{asks("a", "100m"), asks("b", "1")}}, "", 1100, "", false},
		"with the sidecars, without what only begins": {corev1.PodSpec{Containers: []corev1.Container{asks("a", "1")},
			InitContainers: []corev1.Container{asks("i", "9"), sidecar("s", "1")}}, "", 2000, "", false},
		"one container":                    {corev1.PodSpec{Containers: []corev1.Container{asks("a", "100m"), asks("b", "1")}}, "b", 1000, "", false},
		"one that need not ask":            {corev1.PodSpec{Containers: []corev1.Container{asks("a", "100m"), asks("b", "")}}, "a", 100, "", false},
		"one that asks for nothing":        {corev1.PodSpec{Containers: []corev1.Container{asks("a", "100m"), asks("b", "")}}, "", 0, "missing request for cpu in container b of Pod p", false},
		"none of that name":                {corev1.PodSpec{Containers: []corev1.Container{asks("a", "1")}}, "z", 0, "container z not found in Pod p", false},
		"the whole pod":                    {corev1.PodSpec{Resources: whole("cpu", "3"), Containers: []corev1.Container{asks("a", "")}}, "", 3000, "", false},
		"a container of it":                {corev1.PodSpec{Resources: whole("cpu", "3"), Containers: []corev1.Container{asks("a", "1")}}, "a", 1000, "", false},
		"the whole pod, of something else": {corev1.PodSpec{Resources: whole("memory", "3"), Containers: []corev1.Container{asks("a", "1")}}, "", 1000, "", false},
		"the whole pod and what it costs":  {corev1.PodSpec{Resources: whole("cpu", "3"), Overhead: of("500m"), Containers: []corev1.Container{asks("a", "")}}, "", 3500, "", false},
		"what it costs without the whole":  {corev1.PodSpec{Overhead: of("500m"), Containers: []corev1.Container{asks("a", "1")}}, "", 1000, "", false},
		"of something else, and a container asks for nothing": {corev1.PodSpec{Resources: whole("memory", "3"),
			Containers: []corev1.Container{asks("a", "1"), asks("b", "")}}, "", 1000, "", false},
		"of something else, and what begins asks for more": {corev1.PodSpec{Resources: whole("memory", "3"), Overhead: of("500m"),
			InitContainers: []corev1.Container{asks("i", "9")}, Containers: []corev1.Container{asks("a", "1")}}, "", 9500, "", false},
		"of something else alone":                 {corev1.PodSpec{Resources: whole("memory", "3"), Containers: []corev1.Container{asks("a", "")}}, "", 0, "missing pod-level request for cpu in Pod p", false},
		"a container that leaves it to the whole": {corev1.PodSpec{Resources: whole("cpu", "3"), Containers: []corev1.Container{asks("a", "")}}, "a", 0, "missing request for cpu in container a of Pod p", false},
		"the whole pod without the gate":          {corev1.PodSpec{Resources: whole("cpu", "3"), Containers: []corev1.Container{asks("a", "1")}}, "", 1000, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			pod := runningPod("p")
			pod.Spec = tc.spec
			got, err := request(pod, corev1.ResourceCPU, tc.container, !tc.gateOff)
			if got != tc.want || fmt.Sprint(err) != fmt.Sprint(errorOf(tc.err)) {
				t.Errorf("got %d, %v; want %d, %q", got, err, tc.want, tc.err)
			}
		})
	}
}

func TestReplicasByTotal(t *testing.T) {
	unready := func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }
	for name, tc := range map[string]struct {
		current       int32
		usage, target int64
		pods          []*corev1.Pod
		want          int32
		err           error
	}{
		"twice as much, twice as many":            {3, 200, 100, runningPods(3), 6, nil},
		"only ready pods share it":                {3, 200, 100, replaced(runningPods(3), 1, unready), 4, nil},
		"a failed pod that was ready has no part": {3, 200, 100, replaced(runningPods(3), 1, inPhase(corev1.PodFailed)), 4, nil},
		"near enough":                             {3, 105, 100, runningPods(3), 3, nil},
		"from zero there is nobody to ask":        {0, 250, 100, nil, 3, nil},
		"nothing to do":                           {3, 0, 100, runningPods(3), 0, nil},
		"no pods":                                 {3, 200, 100, nil, 0, errNoPods},
		"a great deal":                            {3, math.MaxInt64, 1, runningPods(3), math.MaxInt32, nil},
		"what is below zero asks for no pods":     {3, -500, 100, runningPods(3), 0, nil},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := byTotal(tc.current, tc.usage, tc.target, even, tc.pods)
			if got != tc.want || !errors.Is(err, tc.err) {
				t.Errorf("got %d, %v; want %d, %v", got, err, tc.want, tc.err)
			}
		})
	}
}

func TestReplicasByShare(t *testing.T) {
	for name, tc := range map[string]struct {
		reported      int32
		usage, target int64
		want          int32
		share         int64
	}{
		"a queue of 30 for 10 each":          {2, 30_000, 10_000, 3, 15_000},
		"rounded up":                         {2, 30_001, 10_000, 4, 15_001},
		"near enough":                        {3, 31_000, 10_000, 3, 10_334},
		"nothing waits":                      {3, 0, 10_000, 0, 0},
		"a target that reports no pods yet":  {0, 30_000, 10_000, 3, 30_000},
		"more than there can be pods":        {1, math.MaxInt64, 1, math.MaxInt32, math.MaxInt64},
		"what is below zero wants no pods":   {1, -30_000, 10_000, 0, -30_000},
		"a single pod that does as it shall": {1, 10_000, 10_000, 1, 10_000},
	} {
		t.Run(name, func(t *testing.T) {
			n, share := byShare(tc.reported, tc.usage, tc.target, even)
			if n != tc.want || share != tc.share {
				t.Errorf("got %d, %d; want %d, %d", n, share, tc.want, tc.share)
			}
		})
	}
}

func TestTolerances(t *testing.T) {
	own := &autoscalingv2.HorizontalPodAutoscalerBehavior{
		ScaleUp:   &autoscalingv2.HPAScalingRules{Tolerance: ptr.To(resource.MustParse("0.01"))},
		ScaleDown: &autoscalingv2.HPAScalingRules{Tolerance: ptr.To(resource.MustParse("0.05"))},
	}
	gateOff := usual
	gateOff.ownTolerances = false
	for name, tc := range map[string]struct {
		s       settings
		b       *autoscalingv2.HorizontalPodAutoscalerBehavior
		inside  []float64
		outside []float64
	}{
		"those of all":                 {usual, nil, []float64{0.9, 1, 1.1}, []float64{0.89, 1.11}},
		"its own, as documented":       {usual, own, []float64{0.95, 1, 1.01}, []float64{0.949, 1.02}},
		"not without the gate":         {gateOff, own, []float64{0.9, 1.1}, []float64{0.89, 1.11}},
		"with behavior, without gives": {usual, &autoscalingv2.HorizontalPodAutoscalerBehavior{}, []float64{0.9, 1.1}, []float64{0.89, 1.11}},
	} {
		t.Run(name, func(t *testing.T) {
			tolerances := tc.s.tolerancesOf(tc.b)
			for _, ratio := range tc.inside {
				if !tolerances.within(ratio) {
					t.Errorf("%v is outside", ratio)
				}
			}
			for _, ratio := range tc.outside {
				if tolerances.within(ratio) {
					t.Errorf("%v is inside", ratio)
				}
			}
		})
	}
}
