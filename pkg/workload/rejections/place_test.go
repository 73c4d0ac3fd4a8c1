package rejections

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

// again is a pod that replaces ones which were rejected for so long when it was made.
func again(after time.Duration) func(*corev1.Pod) {
	return func(p *corev1.Pod) { MarkSince(p, p.CreationTimestamp.Add(-after)) }
}

func TestDue(t *testing.T) {
	const s = time.Second
	for name, tc := range map[string]struct {
		pod            *corev1.Pod
		rank, troubled int
		wait           time.Duration
	}{
		"the first replacement is immediate":         {pod("p", 0, refused), 1, 1, 0},
		"also for the last of some":                  {pod("p", 0, refused), 32, 32, 0},
		"of more each waits for its turn":            {pod("p", 0, refused), 33, 64, 300 * s},
		"no longer than this":                        {pod("p", 0, refused), 5000, 5000, 900 * s},
		"the second waits":                           {pod("p", 0, again(0), refused), 1, 1, 10 * s},
		"the third, which was made after that":       {pod("p", 0, again(10*s), refused), 1, 1, 20 * s},
		"the fourth":                                 {pod("p", 0, again(30*s), refused), 1, 1, 40 * s},
		"the fourth, made late":                      {pod("p", 0, again(69*s), refused), 1, 1, 40 * s},
		"the fifth":                                  {pod("p", 0, again(70*s), refused), 1, 1, 80 * s},
		"the sixth":                                  {pod("p", 0, again(150*s), refused), 1, 1, 160 * s},
		"all others":                                 {pod("p", 0, again(310*s), refused), 1, 1, 300 * s},
		"after a day":                                {pod("p", 0, again(24*time.Hour), refused), 1, 1, 300 * s},
		"one of many waits for its turn":             {pod("p", 0, again(0), refused), 64, 64, 300 * s},
		"a record from the future is one":            {pod("p", 0, again(-time.Hour), refused), 1, 1, 10 * s},
		"a record that cannot be read is none":       {pod("p", 0, func(p *corev1.Pod) { p.Annotations = map[string]string{Since: "x"} }, refused), 1, 1, 0},
		"what has passed since its creation, counts": {pod("p", 7*s, again(0), refused), 1, 1, 3 * s},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Due(tc.pod, tc.rank, tc.troubled).Sub(noon); got != tc.wait {
				t.Errorf("waits %v", got)
			}
		})
	}
}

func TestTroubled(t *testing.T) {
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want bool
	}{
		"a rejected pod":                 {pod("p", 0, refused), true},
		"one that waits":                 {pod("p", 0), false},
		"a replacement that waits":       {pod("p", 0, again(0)), true},
		"a replacement that runs":        {pod("p", 0, again(0), running), false},
		"a replacement without a report": {pod("p", 0, again(0), func(p *corev1.Pod) { p.Status.Phase = "" }), true},
		"one that is on its way out":     {pod("p", 0, again(0), func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: noon} }), false},
		"a replacement that failed later": {pod("p", 0, again(0), running, func(p *corev1.Pod) {
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Evicted"
		}), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Troubled(tc.pod); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if got, want := Message(3, "web-0", "OutOfcpu", noon),
		"nodes reject the pods (3 now; web-0 with reason OutOfcpu); the next pod is created at 2026-03-01T12:00:00Z"; got != want {
		t.Errorf("the message is %q", got)
	}
}

// TestFiveMinutesInPlaces plays an owner with places whose pods are rejected within
// a second, whatever it tries. There is nothing that a restart could lose: each
// look is made on the pods that are there and on nothing else.
func TestFiveMinutesInPlaces(t *testing.T) {
	for places, most := range map[int]int{1: 6, 10: 80, 33: 140, 100: 200, 300: 450} {
		for seed := range testworld.Seeds(t, uint64(max(1, min(10, 300/places)))) {
			random := rand.New(rand.NewPCG(seed, seed))
			made, at := make([]*corev1.Pod, places), noon
			n := 0
			for ; at.Before(noon.Add(window)); at = at.Add(time.Duration(100+random.IntN(400)) * time.Millisecond) {
				n += playPlaces(made, at)
			}
			if n > most || n < places+min(places, 32) {
				t.Errorf("seed %d: %d pods were made for %d places, at most %d were expected", seed, n, places, most)
			}
			if seed == 0 {
				t.Logf("%d places, %d pods", places, n)
			}
		}
	}
}

// playPlaces rejects what there is, and fills places as is due; it returns how many.
func playPlaces(in []*corev1.Pod, at time.Time) (n int) {
	troubled := 0
	for _, p := range in {
		if p != nil {
			if at.Sub(p.CreationTimestamp.Time) > 0 {
				refused(p)
			}
			if _, again := SinceOf(p); again {
				troubled++
			}
		}
	}
	for i, p := range in {
		next := pod(fmt.Sprint("p", i), noon.Sub(at.Truncate(time.Second)))
		switch {
		case p == nil:
		case !Rejected(p):
			continue
		default:
			since, again := SinceOf(p)
			if !again {
				troubled++
				since = p.CreationTimestamp.Time
			}
			if at.Before(Due(p, troubled, max(troubled, len(in)))) {
				if !again {
					troubled--
				}
				continue
			}
			MarkSince(next, since)
		}
		in[i] = next
		n++
	}
	return n
}
