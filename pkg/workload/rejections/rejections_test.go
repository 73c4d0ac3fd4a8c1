package rejections

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// pod was made so long before noon, and bound to a node.
func pod(name string, age time.Duration, changes ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(noon.Add(-age))},
		Spec: corev1.PodSpec{NodeName: "n"}, Status: corev1.PodStatus{Phase: corev1.PodPending}}
	for _, change := range changes {
		change(p)
	}
	return p
}

func refused(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "OutOfcpu" }

func running(p *corev1.Pod) {
	p.Status.Phase = corev1.PodRunning
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
}

func TestRejected(t *testing.T) {
	with := func(changes ...func(*corev1.Pod)) *corev1.Pod { return pod("a", 0, append(changes, refused)...) }
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"a pod that failed at once": {with(), true},
		"one whose containers only waited": {with(func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}
		}), true},
		"one that waits":          {pod("a", 0), false},
		"one that runs":           {pod("a", 0, running), false},
		"one that ran and failed": {with(running), false},
		"one whose first container ran": {with(func(p *corev1.Pod) {
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{}}}}
		}), false},
		"one that was restarted":        {with(func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{RestartCount: 1}} }), false},
		"one that never reached a node": {with(func(p *corev1.Pod) { p.Spec.NodeName = "" }), false},
		"one that was disrupted": {with(func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}
		}), false},
		"one that somebody failed without reason": {pod("a", 0, func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), false},
		"one whose time was up":                   {pod("a", 0, refused, func(p *corev1.Pod) { p.Status.Reason = "DeadlineExceeded" }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Rejected(tc.pod); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

// series are rejected pods of these ages.
func series(ages ...time.Duration) []*corev1.Pod {
	var all []*corev1.Pod
	for i, age := range ages {
		all = append(all, pod(fmt.Sprint("r", i), age, refused))
	}
	return all
}

func many(n int, age time.Duration, changes ...func(*corev1.Pod)) []*corev1.Pod {
	var all []*corev1.Pod
	for i := range n {
		all = append(all, pod(fmt.Sprint(age, i), age, changes...))
	}
	return all
}

func TestJudge(t *testing.T) {
	const s = time.Second
	leaving := func(p *corev1.Pod) { p.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) }
	for name, tc := range map[string]struct {
		pods    []*corev1.Pod
		wanted  int
		allowed int
		wait    time.Duration
		inARow  int
	}{
		"no pods":                      {nil, 3, math.MaxInt, 0, 0},
		"those on their way take room": {slices.Concat(many(163, time.Minute, refused), many(1, 2*time.Second, running), many(50, time.Second)), 100, 0, 4 * time.Minute, 1},
		"many on their way, and none was rejected lately": {append(series(6*time.Minute), many(70, time.Second)...), 5, 0, 299 * s, 1},
		"pods that run":                           {many(2, time.Hour, running), 3, math.MaxInt, 0, 0},
		"the first replacement is immediate":      {series(0), 1, 1, 0, 1},
		"the second waits":                        {series(1*s, 0), 1, 0, 10 * s, 2},
		"and comes":                               {series(11*s, 10*s), 1, 1, 0, 2},
		"the third waits for longer":              {series(15*s, 14*s, 4*s), 1, 0, 16 * s, 3},
		"and so on":                               {series(60*s, 59*s, 49*s, 29*s), 1, 0, 11 * s, 4},
		"no longer than five minutes":             {series(2000*s, 1990*s, 1980*s, 1900*s, 1800*s, 1500*s, 1200*s, 900*s, 600*s, 200*s), 1, 0, 100 * s, 10},
		"after a long quiet all is forgotten":     {series(1200*s, 1100*s, 1000*s), 1, math.MaxInt, 0, 0},
		"and of a single one":                     {series(601 * s), 1, math.MaxInt, 0, 0},
		"not before that":                         {series(600 * s), 1, 1, 0, 1},
		"a long quiet before does not count":      {series(2000*s, 1990*s, 5*s), 1, 1, 0, 1},
		"an accepted pod clears what was before":  {append(series(9*s, 8*s, 7*s), pod("ok", 5*s, running)), 2, 69 - 6, 0, 0},
		"an older one does not":                   {append(series(9*s, 8*s), pod("ok", time.Minute, running)), 2, 0, 2 * s, 2},
		"an accepted one that is leaving does":    {append(series(9*s, 8*s), pod("ok", 5*s, running, leaving)), 1, 63, 0, 0},
		"all of a few are replaced":               {many(3, 0, refused), 3, 3, 0, 3},
		"of many only some":                       {many(100, 0, refused), 100, 32, 0, 100},
		"those under way count":                   {append(many(100, 0, refused), many(20, 0)...), 100, 12, 0, 100},
		"a try of which nothing is known counts":  {append(series(30*s, 29*s), pod("p", 5*s)), 1, 0, 15 * s, 2},
		"then half as many":                       {append(many(100, 12*s, refused), many(32, 11*s, refused)...), 100, 16, 0, 132},
		"after a while":                           {append(many(100, 5*s, refused), many(32, 4*s, refused)...), 100, 0, 6 * s, 132},
		"those that run leave fewer to try":       {append(many(7, time.Hour, running), many(3, 1*s, refused)...), 10, 3, 0, 3},
		"enough run":                              {append(many(3, time.Hour, running), series(1*s, 0)...), 3, math.MaxInt, 0, 0},
		"a set of none":                           {series(1*s, 0), 0, math.MaxInt, 0, 0},
		"too many in five minutes, for all":       {append(many(66, 20*s, refused), pod("ok", 10*s, running)), 2, 0, 280 * s, 1},
		"and then as many as have left the times": {append(append(many(66, 301*s, refused), many(3, 20*s, refused)...), pod("ok", 10*s, running)), 2, 63, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			got := AllowanceFor(tc.pods, tc.wanted, noon)
			wait := time.Duration(0)
			if !got.Until.IsZero() {
				wait = got.Until.Sub(noon)
			}
			if got.Allowed != tc.allowed || wait != tc.wait || got.InARow != tc.inARow {
				t.Errorf("got %d, wait %v, %d in a row", got.Allowed, wait, got.InARow)
			}
			if got.InARow > 0 && got.Reason != "OutOfcpu" {
				t.Errorf("got reason %q", got.Reason)
			}
		})
	}
}

// TestFiveMinutesOfRejections plays an owner whose pods are all rejected within a
// second, whatever it tries.
func TestFiveMinutesOfRejections(t *testing.T) {
	for wanted, most := range map[int]int{1: 6, 10: 40, 50: 120, 100: 200, 130: 200} {
		var all []*corev1.Pod
		for at := noon; at.Before(noon.Add(window)); at = at.Add(100 * time.Millisecond) {
			for _, p := range all {
				if at.Sub(p.CreationTimestamp.Time) >= 200*time.Millisecond {
					refused(p)
				}
			}
			active := 0
			for _, p := range all {
				if p.Status.Phase == corev1.PodPending {
					active++
				}
			}
			for range min(wanted-active, AllowanceFor(all, wanted, at).Allowed) {
				p := pod(fmt.Sprint("p", len(all)), 0)
				p.CreationTimestamp = metav1.NewTime(at.Truncate(time.Second))
				all = append(all, p)
			}
		}
		if len(all) > most || len(all) < wanted+1 {
			t.Errorf("%d pods were made for %d, at most %d were expected", len(all), wanted, most)
		}
		t.Logf("%d wanted, %d made", wanted, len(all))
	}
}

// TestSomeNodesAccept plays a cluster in which every fifth pod is accepted: all
// run in the end, and soon.
func TestSomeNodesAccept(t *testing.T) {
	const wanted = 50
	var all []*corev1.Pod
	served := 0
	at := noon
	for ; served < wanted && at.Before(noon.Add(20*time.Minute)); at = at.Add(500 * time.Millisecond) {
		active := 0
		served = 0
		for i, p := range all {
			if p.Status.Phase == corev1.PodPending {
				if i%5 == 0 {
					running(p)
				} else {
					refused(p)
				}
			}
			if p.Status.Phase == corev1.PodRunning {
				served++
			}
		}
		active = served
		for range min(wanted-active, AllowanceFor(all, wanted, at).Allowed) {
			p := pod(fmt.Sprint("p", len(all)), 0)
			p.CreationTimestamp = metav1.NewTime(at.Truncate(time.Second))
			all = append(all, p)
		}
	}
	if served < wanted {
		t.Errorf("%d of %d run, after %d pods", served, wanted, len(all))
	}
	t.Logf("all run after %v and %d pods", at.Sub(noon), len(all))
}
