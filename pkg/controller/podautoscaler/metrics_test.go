package podautoscaler

import (
	"errors"
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/component-base/metrics/testutil"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

func TestPodsWithoutContainersHaveNoSample(t *testing.T) {
	uses := func(name string, containers ...string) metricsv1beta1.PodMetrics {
		of := metricsv1beta1.PodMetrics{ObjectMeta: metav1.ObjectMeta{Name: name}}
		for _, c := range containers {
			of.Containers = append(of.Containers, metricsv1beta1.ContainerMetrics{Name: c, Usage: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}})
		}
		return of
	}
	none := uses("unmeasured", "web")
	none.Containers[0].Usage = nil
	from := fakeReader{used: func() *metricsv1beta1.PodMetricsList {
		return &metricsv1beta1.PodMetricsList{Items: []metricsv1beta1.PodMetrics{uses("both", "web", "log"), uses("one", "web"), uses("empty"), none}}
	}}
	for container, want := range map[string]map[string]int64{"": {"both": 200, "one": 100}, "log": {"both": 100}, "absent": {}} {
		r := usage(corev1.ResourceCPU, container, sources{from, "ns", labels.Everything()}.uses(t.Context()))
		if r.err != nil || len(r.pods) != len(want) {
			t.Errorf("container %q: got %v, %v", container, r.pods, r.err)
		}
		for name, value := range want {
			if r.pods[name].value != value {
				t.Errorf("container %q: %s uses %d, not %d", container, name, r.pods[name].value, value)
			}
		}
	}
}

// The direction of a metric is seen from the number in the status, that of a
// look is what it did.
func TestWhatIsCounted(t *testing.T) {
	register()
	for name, tc := range map[string]struct {
		w     world
		did   action
		whole []string
		part  []string
		// desired is the series of the wanted number; below zero where there is none.
		desired float64
	}{
		"at the first look all is more than nothing": {seen(2, []reading{using(500, 500)}), none, []string{"none", "none"}, []string{"scale_up", "none", "Resource"}, 2},
		"as many as the status says":                 {seen(2, []reading{using(500, 500)}, counted(2)), none, []string{"none", "none"}, []string{"none", "none", "Resource"}, 2},
		"fewer than the status says":                 {seen(2, []reading{using(500, 500)}, counted(4)), none, []string{"none", "none"}, []string{"scale_down", "none", "Resource"}, 2},
		"the only metric fails":                      {seen(2, []reading{broken("none here")}, counted(2)), none, []string{"none", "internal"}, []string{"none", "internal", "Resource"}, -1},
		"one of two metrics fails": {seen(2, []reading{using(1000, 1000), broken("none here")}, counted(2), by(cpuAt(50), podsAt("1"))), scaleUp,
			[]string{"scale_up", "internal"}, []string{"none", "internal", "Pods"}, 4},
		"shared pods":                {shared(), none, []string{"none", "internal"}, nil, -1},
		"somebody scaled it to zero": {seen(0, nil, counted(2)), none, []string{"none", "none"}, nil, 0},
	} {
		t.Run(name, func(t *testing.T) {
			reconciliations.Reset()
			computations.Reset()
			desiredReplicas.Reset()
			count(decide(tc.w, settled, usual, noon), tc.w, tc.did)
			if n, err := testutil.GetCounterMetricValue(reconciliations.WithLabelValues(tc.whole...)); n != 1 || err != nil {
				t.Errorf("not counted as %v, %v", tc.whole, err)
			}
			if tc.part != nil {
				if n, err := testutil.GetCounterMetricValue(computations.WithLabelValues(tc.part...)); n != 1 || err != nil {
					t.Errorf("no metric counted as %v, %v", tc.part, err)
				}
			}
			if got := wanted(t); got != tc.desired {
				t.Errorf("wants %v", got)
			}
		})
	}
}

// count tells the metrics what a plan would, but for how long it took.
func count(d decision, w world, did action) {
	for _, c := range d.counts(observed{world: w}, did, nil) {
		switch {
		case c.Adds != nil:
			c.Adds.Add(c.Value)
		case c.Sets != nil:
			c.Sets.Set(c.Value)
		}
	}
}

// A number that could not be set is not what the series shows.
func TestTheWantedNumberAfterAFailure(t *testing.T) {
	register()
	desiredReplicas.Reset()
	w := seen(2, []reading{using(1000, 1000)})
	p := decide(w, settled, usual, noon)
	p.notRescaled(&w.hpa.Status, errors.New("refused"), noon)
	count(p, w, none)
	if got := wanted(t); got != -1 {
		t.Errorf("wants %v", got)
	}
}

func wanted(t *testing.T) float64 {
	t.Helper()
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == subsystem+"_desired_replicas" {
			return f.GetMetric()[0].GetGauge().GetValue()
		}
	}
	return -1
}

func counted(n int32) func(*autoscalingv2.HorizontalPodAutoscaler) {
	return func(hpa *autoscalingv2.HorizontalPodAutoscaler) { hpa.Status.CurrentReplicas = n }
}

func shared() world {
	w := seen(2, nil)
	w.unselectable = &refusal{reason: "AmbiguousSelector", message: "shared", condition: conditionState{false, "AmbiguousSelector", "shared"}, err: errors.New("shared")}
	return w
}
