package podautoscaler

import (
	"errors"
	"maps"
	"math"

	corev1 "k8s.io/api/core/v1"
)

var (
	errNoPods     = errors.New("no pods returned by selector while calculating replica count")
	errNoneReady  = errors.New("did not receive metrics for targeted pods (pods might be unready)")
	errNoRequests = errors.New("no metrics returned matched known pods")
)

// tolerances are how far a ratio may be from 1 before anything is scaled.
type tolerances struct{ down, up float64 }

func (t tolerances) within(ratio float64) bool { return 1-t.down <= ratio && ratio <= 1+t.up }

// pods32 rounds a number of pods up. What is no number of pods becomes the nearest one.
func pods32(x float64) int32 {
	switch x = math.Ceil(x); {
	case math.IsNaN(x) || x < 0:
		return 0
	case x > math.MaxInt32:
		return math.MaxInt32
	}
	return int32(x)
}

// recommend returns the number of pods that brings the ratio of usage to target
// to 1. Where samples are missing or do not count yet, they are taken to be what
// damps the change: all that a pod may use when there is too little to do (full
// says how much that is), nothing when there is too much. If the ratio is on the
// other side of 1 then, or within the tolerance, the number stays.
func recommend(current int32, g groups, t tolerances, ratio func(samples) float64, full func(pod string) int64) int32 {
	first := ratio(g.known)
	withUnready := len(g.unready) > 0 && first > 1
	if !withUnready && len(g.missing) == 0 {
		if t.within(first) {
			return current
		}
		return pods32(first * float64(g.ready))
	}
	filled := make(samples, len(g.known)+len(g.missing)+len(g.unready))
	maps.Copy(filled, g.known)
	for _, name := range g.missing {
		switch {
		case first < 1:
			filled[name] = sample{value: full(name)}
		case first > 1:
			filled[name] = sample{}
		}
	}
	if withUnready {
		for _, name := range g.unready {
			filled[name] = sample{}
		}
	}
	second := ratio(filled)
	if t.within(second) || first < 1 && second > 1 || first > 1 && second < 1 {
		return current
	}
	n := pods32(second * float64(len(filled)))
	if second < 1 && n > current || second > 1 && n < current {
		return current
	}
	return n
}

// byValue recommends from the usage of each pod; usage is the average there is now.
func byValue(current int32, target int64, t tolerances, pods []*corev1.Pod, g groups) (n int32, usage int64, err error) {
	switch {
	case len(pods) == 0:
		return 0, 0, errNoPods
	case len(g.known) == 0:
		return 0, 0, errNoneReady
	}
	ratio := func(s samples) float64 { return float64(average(s)) / float64(target) }
	return recommend(current, g, t, ratio, func(string) int64 { return target }), average(g.known), nil
}

func average(s samples) int64 { return s.sum() / int64(len(s)) }

// utilization is how much of what pods ask for they use.
type utilization struct {
	percent int32
	// average is what a pod uses.
	average int64
}

// byUtilization recommends from the share that pods use of what they ask for.
func byUtilization(current, target int32, t tolerances, pods []*corev1.Pod, g groups, requested func() (map[string]int64, error)) (n int32, used utilization, err error) {
	switch {
	case len(pods) == 0:
		return 0, used, errNoPods
	case len(g.known) == 0:
		return 0, used, errNoneReady
	}
	asked, err := requested()
	if err != nil {
		return 0, used, err
	}
	used, ok := utilized(g.known, asked)
	if !ok {
		return 0, used, errNoRequests
	}
	ratio := func(s samples) float64 {
		u, _ := utilized(s, asked)
		return float64(u.percent) / float64(target)
	}
	full := func(pod string) int64 {
		return int64(float64(asked[pod]) * float64(max(100, target)) / 100)
	}
	return recommend(current, g, t, ratio, full), used, nil
}

// utilized counts the pods whose usage and request are both known; false without any.
func utilized(s samples, asked map[string]int64) (utilization, bool) {
	var usage, request, count int64
	for name, one := range s {
		if of, ok := asked[name]; ok {
			usage, request, count = add(usage, one.value), add(request, of), count+1
		}
	}
	if request == 0 {
		return utilization{}, false
	}
	percent := float64(usage) * 100 / float64(request)
	return utilization{percent: int32(min(percent, math.MaxInt32)), average: usage / count}, true
}

// byTotal recommends from one number that the ready pods of a workload share the
// work of.
func byTotal(current int32, usage, target int64, t tolerances, pods []*corev1.Pod) (int32, error) {
	ratio := float64(usage) / float64(target)
	switch {
	case current == 0:
		return pods32(ratio), nil
	case t.within(ratio):
		return current, nil
	case len(pods) == 0:
		return 0, errNoPods
	}
	return pods32(ratio * float64(readyPods(pods))), nil
}

// byShare recommends from one number that is divided among the pods that the
// target reports; share is what one has of it now.
func byShare(reported int32, usage, target int64, t tolerances) (n int32, share int64) {
	if reported == 0 {
		return pods32(float64(usage) / float64(target)), usage
	}
	n = reported
	if ratio := float64(usage) / (float64(target) * float64(reported)); !t.within(ratio) {
		n = pods32(float64(usage) / float64(target))
	}
	share = usage / int64(reported)
	if usage%int64(reported) > 0 {
		share++
	}
	return n, share
}
