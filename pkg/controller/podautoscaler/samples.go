package podautoscaler

import (
	"maps"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// sample is what was measured of one pod, in thousandths.
type sample struct {
	value int64
	// at is the end of the window in which it was measured.
	at     time.Time
	window time.Duration
}

// samples are those of one metric, by the name of the pod.
type samples map[string]sample

// sum does not run over.
func (s samples) sum() int64 {
	var total int64
	for _, one := range s {
		total = add(total, one.value)
	}
	return total
}

// add sums, up to the largest number there is and down to the least.
func add(a, b int64) int64 {
	switch {
	case b > 0 && a > math.MaxInt64-b:
		return math.MaxInt64
	case b < 0 && a < math.MinInt64-b:
		return math.MinInt64
	}
	return a + b
}

var mostThousandths, leastThousandths = *resource.NewMilliQuantity(math.MaxInt64, resource.DecimalSI), *resource.NewMilliQuantity(math.MinInt64, resource.DecimalSI)

// thousandths is a quantity in thousandths, or the nearest number that fits: that of 10P
// would be 0.
func thousandths(q *resource.Quantity) int64 {
	switch {
	case q.Cmp(mostThousandths) >= 0:
		return math.MaxInt64
	case q.Cmp(leastThousandths) <= 0:
		return math.MinInt64
	}
	return q.MilliValue()
}

// timing is how long the samples of a pod that starts say nothing.
type timing struct {
	cpuInitialization, readinessDelay time.Duration
}

// groups are pods by what their samples are good for.
type groups struct {
	// ready is how many have a sample that counts.
	ready int
	// unready have none that counts yet, missing none at all.
	unready, missing []string
	// known are the samples that count.
	known samples
}

// sortPods sorts pods by what their samples are good for. Pods that have failed
// or are being deleted are in no group.
func sortPods(all []*corev1.Pod, measured samples, of corev1.ResourceName, t timing, now time.Time) groups {
	g := groups{known: maps.Clone(measured)}
	for _, pod := range all {
		s, found := measured[pod.Name]
		switch {
		case pod.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodFailed:
			delete(g.known, pod.Name)
		case pod.Status.Phase == corev1.PodPending:
			g.unready = append(g.unready, pod.Name)
			delete(g.known, pod.Name)
		case !found:
			g.missing = append(g.missing, pod.Name)
		case of == corev1.ResourceCPU && starting(pod, s, t, now):
			g.unready = append(g.unready, pod.Name)
			delete(g.known, pod.Name)
		default:
			g.ready++
		}
	}
	return g
}

// starting reports whether the sample is of a pod's start, which says nothing of
// the work that it does.
func starting(pod *corev1.Pod, s sample, t timing, now time.Time) bool {
	ready := pods.Condition(pod, corev1.PodReady)
	if ready == nil || pod.Status.StartTime == nil {
		return true
	}
	since := ready.LastTransitionTime.Time
	if pod.Status.StartTime.Add(t.cpuInitialization).After(now) {
		return ready.Status == corev1.ConditionFalse || s.at.Before(since.Add(s.window))
	}
	// It has never been ready: its readiness has not changed since it started.
	return ready.Status == corev1.ConditionFalse && pod.Status.StartTime.Add(t.readinessDelay).After(since)
}

// readyPods counts the pods that run and are ready.
func readyPods(all []*corev1.Pod) int {
	n := 0
	for _, pod := range all {
		if ready := pods.Condition(pod, corev1.PodReady); pod.Status.Phase == corev1.PodRunning && ready != nil && ready.Status == corev1.ConditionTrue {
			n++
		}
	}
	return n
}
