package podautoscaler

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

type hpaOption = func(*autoscalingv2.HorizontalPodAutoscaler)

// seen is a world of n running pods, with one reading for each metric.
func seen(n int32, readings []reading, change ...hpaOption) world {
	return world{hpa: autoscaler(change...), current: n, reported: n, pods: runningPods(int(n)), readings: readings}
}

func using(values ...int64) reading { return reading{pods: measuredAt(values...)} }

func broken(text string) reading { return reading{err: errors.New(text)} }

// settled is a history whose recommendations are all out of the window.
var settled = history{recommendations: []recommendation{}}

// outcome is what the tables compare.
type outcome struct {
	Desired    int32
	Reason     string
	Conditions []string
	Notes      []string
	Failed     string
}

func outcomeOf(p decision) outcome {
	o := outcome{Desired: -1}
	if p.rescale {
		o.Desired, o.Reason = p.desired, p.reason
	}
	for _, c := range p.status.Conditions {
		o.Conditions = append(o.Conditions, fmt.Sprintf("%s=%s %s", c.Type, c.Status, c.Reason))
	}
	for _, n := range p.events {
		o.Notes = append(o.Notes, fmt.Sprintf("%s: %s", n.Reason, n.Message))
	}
	if p.err != nil {
		o.Failed = p.err.Error()
	}
	return o
}

const (
	able, ready, active = "AbleToScale=True SucceededGetScale", "AbleToScale=True ReadyForNewScale", "ScalingActive=True ValidMetricFound"
	inRange             = "ScalingLimited=False DesiredWithinRange"
	cpuAbove            = "cpu resource utilization (percentage of request) above target"
	noMetrics           = "unable to fetch metrics from resource metrics API: none here"
)

func TestDecide(t *testing.T) {
	all := func(more ...string) []string { return append([]string{ready, active}, more...) }
	for name, tc := range map[string]struct {
		w    world
		want outcome
	}{
		"as it should be": {seen(2, []reading{using(500, 500)}), outcome{-1, "", all(inRange), nil, ""}},
		"too much":        {seen(2, []reading{using(1000, 1000)}), outcome{4, cpuAbove, all(inRange), nil, ""}},
		"too little":      {seen(2, []reading{using(200, 200)}), outcome{1, reasonTooIdle, all(inRange), nil, ""}},
		"the highest":     {seen(6, []reading{using(900, 900, 900, 900, 900, 900)}), outcome{10, cpuAbove, all("ScalingLimited=True TooManyReplicas"), nil, ""}},
		"the lowest": {seen(6, []reading{using(1, 1, 1, 1, 1, 1)}, between(2, 10)),
			outcome{2, reasonTooIdle, all("ScalingLimited=True TooFewReplicas"), nil, ""}},
		"above the highest": {seen(12, nil), outcome{10, reasonAboveMax, []string{able}, nil, ""}},
		"below the lowest":  {seen(1, nil, between(2, 10)), outcome{2, reasonBelowMin, []string{able}, nil, ""}},
		"scaled to zero":    {seen(0, nil), outcome{-1, "", []string{able, "ScalingActive=False ScalingDisabled"}, nil, ""}},
		"the larger of two": {seen(2, []reading{using(500, 500), using(3000, 3000)}, by(cpuAt(50), podsAt("1"))),
			outcome{4, "pods metric hits above target", all("ScalingLimited=True ScaleUpLimit"), nil, ""}},
		"the only metric fails": {seen(2, []reading{broken("none here")}), outcome{-1, "", []string{able, "ScalingActive=False FailedGetResourceMetric"},
			[]string{"FailedGetResourceMetric: failed to get cpu utilization: unable to get metrics for resource cpu: none here",
				"FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: failed to get cpu utilization: unable to get metrics for resource cpu: none here"},
			"failed to compute desired number of replicas based on listed metrics: invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: failed to get cpu utilization: unable to get metrics for resource cpu: none here"}},
		"one of two fails, the other asks for more": {seen(2, []reading{broken("none here"), using(2000, 2000)}, by(cpuAt(50), podsAt("1"))),
			outcome{4, "pods metric hits above target", all(inRange),
				[]string{"FailedGetResourceMetric: failed to get cpu utilization: unable to get metrics for resource cpu: none here"},
				"invalid metrics (1 invalid out of 2), first error is: failed to get cpu resource metric value: failed to get cpu utilization: unable to get metrics for resource cpu: none here"}},
		"the larger of two comes first": {seen(2, []reading{using(3000, 3000), using(1200, 1200)}, by(podsAt("1"), podsAt("1"))),
			outcome{4, "pods metric hits above target", all("ScalingLimited=True ScaleUpLimit"), nil, ""}},
		"two ask for as many, and the first has the say": {seen(2, []reading{using(1000, 1000), using(2000, 2000)}, by(cpuAt(50), podsAt("1"))),
			outcome{4, cpuAbove, all(inRange), nil, ""}},
		"one of two fails, the other asks for no change": {seen(2, []reading{broken("none here"), using(1000, 1000)}, by(cpuAt(50), podsAt("1"))),
			outcome{-1, "", all(inRange),
				[]string{"FailedGetResourceMetric: failed to get cpu utilization: unable to get metrics for resource cpu: none here"},
				"invalid metrics (1 invalid out of 2), first error is: failed to get cpu resource metric value: failed to get cpu utilization: unable to get metrics for resource cpu: none here"}},
		"one of two fails, the other asks for less": {seen(2, []reading{using(10, 10), broken("none here")}, by(cpuAt(50), podsAt("1"))),
			outcome{-1, "", []string{able, "ScalingActive=False FailedGetPodsMetric"},
				[]string{"FailedGetPodsMetric: unable to get metric hits: none here",
					"FailedComputeMetricsReplicas: invalid metrics (1 invalid out of 2), first error is: failed to get pods metric value: unable to get metric hits: none here"},
				"failed to compute desired number of replicas based on listed metrics: invalid metrics (1 invalid out of 2), first error is: failed to get pods metric value: unable to get metric hits: none here"}},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, outcomeOf(decide(tc.w, settled, usual, noon))); d != "" {
				t.Error(d)
			}
		})
	}
}

// At zero nothing is found either when all metrics fail.
func TestAllMetricsFailAtZero(t *testing.T) {
	w := seen(0, []reading{broken("none here")}, by(externalAt(averageOf("10"))), between(0, 10))
	w.hpa.Status.Conditions = withCondition(w.hpa.Status.Conditions, autoscalingv2.ScaledToZero, scaledToZero, noon)
	gated := usual
	gated.toZero = true
	p := decide(w, settled, gated, noon)
	if d := cmp.Diff([]string{"ScaledToZero=True ScaledToZero", able, "ScalingActive=False FailedGetExternalMetric"}, outcomeOf(p).Conditions); d != "" {
		t.Error(d)
	}
}

func TestWhenMetricsAreAskedFor(t *testing.T) {
	refused := seen(2, nil)
	refused.unscalable = &refusal{}
	for name, tc := range map[string]struct {
		w    world
		want bool
	}{
		"within the bounds":       {seen(2, nil), true},
		"at the highest number":   {seen(10, nil), true},
		"above it":                {seen(11, nil), false},
		"at the lowest number":    {seen(2, nil, between(2, 10)), true},
		"below it":                {seen(1, nil, between(2, 10)), false},
		"left alone at zero":      {seen(0, nil), false},
		"the target cannot scale": {refused, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tc.w.measures(usual); got != tc.want {
				t.Errorf("got %t", got)
			}
		})
	}
}

func TestWhatMetricsAreCalled(t *testing.T) {
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}
	selected := externalAt(averageOf("1"))
	selected.External.Metric.Selector = selector
	container := autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType, ContainerResource: &autoscalingv2.ContainerResourceMetricSource{
		Name: corev1.ResourceCPU, Container: "web", Target: autoscalingv2.MetricTarget{AverageUtilization: ptr.To(int32(50))}}}
	for want, tc := range map[string]struct {
		spec autoscalingv2.MetricSpec
		r    reading
	}{
		"cpu resource utilization (percentage of request)": {cpuAt(50), using(4000)},
		"memory resource": {memoryAt("1"), using(4000)},
		"cpu container resource utilization (percentage of request)": {container, using(4000)},
		"pods metric hits":           {podsAt("1"), using(4000)},
		"Service metric hits":        {objectAt(valueOf("1")), reading{value: 4000}},
		"external metric hits(nil)":  {objectAt(averageOf("1")), reading{value: 4000}},
		"external metric queue(nil)": {externalAt(valueOf("1")), reading{value: 4000}},
		"external metric queue(&LabelSelector{MatchLabels:map[string]string{a: b,},MatchExpressions:[]LabelSelectorRequirement{},})": {selected, reading{value: 4000}},
	} {
		t.Run(want, func(t *testing.T) {
			p := decide(seen(1, []reading{tc.r}, by(tc.spec)), history{}, usual, noon)
			if !p.rescale || p.desired != 4 || p.reason != want+" above target" {
				t.Errorf("got %d, %q, %v", p.desired, p.reason, p.err)
			}
			if got := p.status.CurrentMetrics[0].Type; got != tc.spec.Type {
				t.Errorf("the status is of a %s metric", got)
			}
		})
	}
}

// An average of a container is called as that of whole pods is.
func TestWhatAnAverageOfAContainerIsCalled(t *testing.T) {
	spec := autoscalingv2.MetricSpec{Type: autoscalingv2.ContainerResourceMetricSourceType, ContainerResource: &autoscalingv2.ContainerResourceMetricSource{
		Name: corev1.ResourceCPU, Container: "web", Target: averageOf("1")}}
	p := decide(seen(1, []reading{using(4000)}, by(spec)), history{}, usual, noon)
	if p.desired != 4 || p.reason != "cpu resource above target" || p.status.CurrentMetrics[0].ContainerResource == nil {
		t.Errorf("got %d, %q, %v", p.desired, p.reason, p.err)
	}
}

func TestWhatIsSaidOfFailures(t *testing.T) {
	nothing := autoscalingv2.MetricTarget{}
	both := valueOf("1")
	both.AverageValue = averageOf("1").AverageValue
	unaimed := autoscalingv2.MetricSpec{Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: "cpu"}}
	for want, tc := range map[string]struct {
		spec autoscalingv2.MetricSpec
		r    reading
		// all is what is put before it when all metrics are summed up.
		all string
	}{
		"FailedGetResourceMetric: failed to get memory usage: unable to get metrics for resource memory: none here": {memoryAt("1"), broken("none here"), "failed to get memory resource metric value: "},
		"FailedGetResourceMetric: " + errNoResourceTarget.Error():                                                   {unaimed, reading{}, "failed to get cpu resource metric value: "},
		"FailedGetPodsMetric: unable to get metric hits: none here":                                                 {podsAt("1"), broken("none here"), "failed to get pods metric value: "},
		"FailedGetPodsMetric: bad selector":                                                                         {podsAt("1"), reading{err: errors.New("bad selector"), senseless: true}, "failed to get pods metric value: "},
		"FailedGetObjectMetric: unable to get metric hits: Service on ns front/none here":                           {objectAt(valueOf("1")), broken("none here"), "failed to get object metric value: "},
		"FailedGetObjectMetric: " + errNoObjectTarget.Error():                                                       {objectAt(nothing), reading{}, "failed to get object metric value: "},
		"FailedGetExternalMetric: unable to get external metric ns/queue/nil: none here":                            {externalAt(valueOf("1")), broken("none here"), "failed to get queue external metric value: failed to get external metric queue: "},
		"FailedGetObjectMetric: unable to get metric hits: Service on ns front/gone":                                {objectAt(averageOf("1")), broken("gone"), "failed to get object metric value: failed to get hits object metric: "},
		"FailedGetExternalMetric: unable to get external metric ns/queue/nil: gone":                                 {externalAt(averageOf("1")), broken("gone"), "failed to get queue external metric value: failed to get queue external metric: "},
		"FailedGetObjectMetric: unable to get metric hits: Service on ns front/both":                                {objectAt(both), broken("both"), "failed to get object metric value: "},
		"FailedGetExternalMetric: " + errNoExternalTarget.Error():                                                   {externalAt(nothing), reading{}, "failed to get queue external metric value: "},
		`InvalidMetricSourceType: unknown metric source type "Odd"`:                                                 {autoscalingv2.MetricSpec{Type: "Odd"}, reading{}, ""},
	} {
		t.Run(want, func(t *testing.T) {
			p := decide(seen(1, []reading{tc.r}, by(tc.spec)), history{}, usual, noon)
			got := outcomeOf(p)
			_, told, _ := strings.Cut(want, ": ")
			if p.rescale || len(got.Notes) != 2 || got.Notes[0] != want || !strings.HasSuffix(got.Notes[1], "first error is: "+tc.all+told) {
				t.Errorf("got %+v", got)
			}
			why, text, _ := strings.Cut(want, ": ")
			c := p.status.Conditions[1]
			if c.Reason != why || c.Message != "the HPA was unable to compute the replica count: "+text {
				t.Errorf("condition %+v", c)
			}
			if d := cmp.Diff([]autoscalingv2.MetricStatus{{}}, p.status.CurrentMetrics); d != "" {
				t.Error(d)
			}
		})
	}
}

// The API server refuses a metric without its source. One that is stored is reported as of an unknown type.
func TestAMetricWithoutItsSourceIsTold(t *testing.T) {
	for _, kind := range []autoscalingv2.MetricSourceType{autoscalingv2.ResourceMetricSourceType, autoscalingv2.ContainerResourceMetricSourceType,
		autoscalingv2.PodsMetricSourceType, autoscalingv2.ObjectMetricSourceType, autoscalingv2.ExternalMetricSourceType} {
		got := outcomeOf(decide(seen(1, []reading{{}}, by(autoscalingv2.MetricSpec{Type: kind})), history{}, usual, noon))
		if want := fmt.Sprintf("InvalidMetricSourceType: unknown metric source type %q", kind); len(got.Notes) != 2 || got.Notes[0] != want {
			t.Errorf("%s: got %+v", kind, got)
		}
	}
}

func TestMemoryIsWrittenInPowersOfTwo(t *testing.T) {
	const mebibyte = 1 << 20 * 1000
	for want, spec := range map[string]autoscalingv2.MetricSpec{"1Mi": memoryAt("1M"), "1048576": podsAt("1M")} {
		p := decide(seen(1, []reading{using(mebibyte)}, by(spec)), history{}, usual, noon)
		current := p.status.CurrentMetrics[0]
		got := current.Resource
		if got == nil {
			got = &autoscalingv2.ResourceMetricStatus{Current: current.Pods.Current}
		}
		if got.Current.AverageValue.String() != want {
			t.Errorf("got %s, want %s", got.Current.AverageValue, want)
		}
	}
}

func TestARefusedTargetKeepsItsNumbers(t *testing.T) {
	w := seen(0, nil)
	w.hpa.Status = autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: 3, DesiredReplicas: 3}
	w.unscalable = &refusal{"FailedGetScale", "gone", conditionState{false, "FailedGetScale", "cannot: gone"}, errors.New("failed: gone"), false}
	p := decide(w, history{}, usual, noon)
	if d := cmp.Diff(outcome{-1, "", []string{"AbleToScale=False FailedGetScale"}, []string{"FailedGetScale: gone"}, "failed: gone"}, outcomeOf(p)); d != "" {
		t.Error(d)
	}
	if p.status.CurrentReplicas != 3 || p.status.DesiredReplicas != 3 {
		t.Errorf("got %+v", p.status)
	}
}

func TestASharedPodStopsScaling(t *testing.T) {
	w := seen(2, nil)
	w.hpa.Status.DesiredReplicas = 7
	w.unselectable = &refusal{"AmbiguousSelector", "shared", conditionState{false, "AmbiguousSelector", "shared"}, errors.New("shared"), true}
	p := decide(w, history{}, usual, noon)
	want := outcome{-1, "", []string{able, "ScalingActive=False AmbiguousSelector"}, []string{"AmbiguousSelector: shared", "FailedComputeMetricsReplicas: shared"}, "shared"}
	if d := cmp.Diff(want, outcomeOf(p)); d != "" {
		t.Error(d)
	}
	if p.status.CurrentReplicas != 2 || p.status.DesiredReplicas != 7 {
		t.Errorf("got %+v", p.status)
	}
}

func TestStatusAfterARescale(t *testing.T) {
	p := decide(seen(2, []reading{using(1000, 1000)}), history{}, usual, noon)
	failed := p
	p.rescaled(usual, noon)
	if p.status.LastScaleTime == nil || p.status.DesiredReplicas != 4 || p.status.CurrentReplicas != 2 {
		t.Errorf("got %+v", p.status)
	}
	if got, want := outcomeOf(p).Notes, []string{"SuccessfulRescale: New size: 4; reason: " + cpuAbove}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
	failed.notRescaled(&autoscalingv2.HorizontalPodAutoscalerStatus{DesiredReplicas: 2}, errors.New("refused"), noon)
	if failed.status.LastScaleTime != nil || failed.status.DesiredReplicas != 2 || holds(failed.status.Conditions, autoscalingv2.AbleToScale) {
		t.Errorf("got %+v", failed.status)
	}
	if got, want := outcomeOf(failed).Notes, []string{"FailedRescale: New size: 4; reason: " + cpuAbove + "; error: refused"}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestAConditionKeepsItsTime(t *testing.T) {
	w := seen(2, []reading{using(500, 500)})
	first := decide(w, history{}, usual, noon)
	w.hpa.Status = first.status
	second := decide(w, first.history, usual, noon.Add(time.Minute))
	if d := cmp.Diff(first.status, second.status); d != "" {
		t.Error(d)
	}
}

// Whatever is measured, however little is known: the number stays in its bounds,
// nothing is shrunk while a metric fails, and no number in the status is below zero.
func TestAnyWorld(t *testing.T) {
	for seed := range testworld.Seeds(t, 2000) {
		r := rand.New(rand.NewPCG(seed, seed))
		w := anyWorld(r)
		p := decide(w, history{}, usual, noon)
		least, most := *w.hpa.Spec.MinReplicas, w.hpa.Spec.MaxReplicas
		if p.rescale && (p.desired < least || p.desired > most) {
			t.Fatalf("seed %d: %d is outside of %d to %d", seed, p.desired, least, most)
		}
		if p.rescale && p.desired < w.current && w.current >= least && w.current <= most && slices.ContainsFunc(w.readings, func(r reading) bool { return r.err != nil }) {
			t.Fatalf("seed %d: shrinks from %d to %d while a metric fails", seed, w.current, p.desired)
		}
		if p.status.CurrentReplicas < 0 || p.status.DesiredReplicas < 0 {
			t.Fatalf("seed %d: %+v", seed, p.status)
		}
		if p.err == nil && !p.rescale && p.status.DesiredReplicas != w.current {
			t.Fatalf("seed %d: desires %d, and leaves %d", seed, p.status.DesiredReplicas, w.current)
		}
	}
}

func anyWorld(r *rand.Rand) world {
	least := 1 + r.Int32N(5)
	w := seen(r.Int32N(20), nil, between(least, least+r.Int32N(20)), behaving(anyBehavior(r)), by())
	for i := range w.pods {
		switch r.IntN(8) {
		case 0:
			replaced(w.pods, i, ending)
		case 1:
			replaced(w.pods, i, inPhase(corev1.PodFailed))
		case 2:
			replaced(w.pods, i, started(time.Minute, time.Second, corev1.ConditionFalse))
		}
	}
	w.reported = r.Int32N(20)
	for range 1 + r.IntN(3) {
		quantity := resource.NewMilliQuantity(1+r.Int64N(1<<uint(1+r.IntN(60))), resource.DecimalSI).String()
		w.hpa.Spec.Metrics = append(w.hpa.Spec.Metrics, []autoscalingv2.MetricSpec{
			cpuAt(1 + r.Int32N(500)), memoryAt(quantity), podsAt(quantity), objectAt(valueOf(quantity)), objectAt(averageOf(quantity)),
			externalAt(valueOf(quantity)), externalAt(averageOf(quantity))}[r.IntN(7)])
		one := reading{value: r.Int64N(1 << uint(1+r.IntN(62))), pods: samples{}}
		for _, pod := range w.pods {
			if r.IntN(4) > 0 {
				one.pods[pod.Name] = sample{value: r.Int64N(1 << uint(1+r.IntN(62))), at: noon, window: time.Minute}
			}
		}
		if r.IntN(5) == 0 {
			one = broken("none here")
		}
		w.readings = append(w.readings, one)
	}
	return w
}

func FuzzUtilization(f *testing.F) {
	f.Add(int32(50), "100m", "200m", "50m")
	f.Add(int32(2147483647), "9E", "1n", "9E")
	f.Fuzz(func(t *testing.T, target int32, request, first, second string) {
		asked, err1 := resource.ParseQuantity(request)
		a, err2 := resource.ParseQuantity(first)
		b, err3 := resource.ParseQuantity(second)
		if errors.Join(err1, err2, err3) != nil || target < 1 || asked.Sign() < 0 {
			return
		}
		pods := runningPods(3)
		for _, pod := range pods {
			pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = asked
		}
		g := sortPods(pods, measuredAt(a.MilliValue(), b.MilliValue()), corev1.ResourceCPU, usual.timing, noon)
		n, used, err := byUtilization(3, target, even, pods, g, func() (map[string]int64, error) { return requests(pods, corev1.ResourceCPU, "", true) })
		if n < 0 || err == nil && a.Sign() >= 0 && b.Sign() >= 0 && used.percent < 0 {
			t.Errorf("%d pods at %d%%", n, used.percent)
		}
		if n, _, _ := byValue(3, max(1, asked.MilliValue()), even, pods, g); n < 0 {
			t.Errorf("%d pods", n)
		}
	})
}
