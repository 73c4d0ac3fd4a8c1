package replicas

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

// Each row differs in one rank, and in the following rank the other way round:
// the rank in question must outweigh it.
func TestVictims(t *testing.T) {
	for name, tc := range map[string]struct {
		first, second *corev1.Pod
		onNode        map[string]int
	}{
		"a pod without a node goes before one that has one": {
			first:  pod("z", on(""), phase(corev1.PodRunning)),
			second: pod("a", phase(corev1.PodPending)),
		},
		"pending goes before unknown": {
			first:  pod("z", phase(corev1.PodPending)),
			second: pod("a", phase(corev1.PodUnknown), unready),
		},
		"unknown goes before running": {
			first:  pod("z", phase(corev1.PodUnknown)),
			second: pod("a", unready),
		},
		"not ready goes before ready": {
			first:  pod("z", unready, cost("10")),
			second: pod("a", cost("-10")),
		},
		"the cheaper to delete goes first": {
			first:  pod("z", cost("-5"), on("roomy")),
			second: pod("a", cost("5"), on("crowded")),
			onNode: map[string]int{"crowded": 3, "roomy": 1},
		},
		"no cost is a cost of zero": {
			first:  pod("z"),
			second: pod("a", cost("1")),
		},
		"a pod that shares its node goes before one that is alone": {
			first:  pod("z", on("crowded")),
			second: pod("a", on("roomy"), ready(ago(time.Second))),
			onNode: map[string]int{"crowded": 2, "roomy": 1},
		},
		"one ready for a short time goes before one ready for long": {
			first:  pod("z", ready(ago(time.Minute))),
			second: pod("a", restarted(9)),
		},
		"one that does not say since when it is ready goes first": {
			first:  pod("z", func(p *corev1.Pod) { p.Status.Conditions[0].LastTransitionTime.Reset() }),
			second: pod("a", ready(ago(time.Second))),
		},
		"times ready of the same magnitude are as one: the UID decides": {
			first:  pod("a", ready(ago(70*time.Second))),
			second: pod("z", ready(ago(69*time.Second)), restarted(9)),
		},
		"more restarts go first": {
			first:  pod("z", restarted(3), sidecarRestarted(0)),
			second: pod("a", restarted(2), sidecarRestarted(9)),
		},
		"more restarts of a sidecar go first": {
			first:  pod("z", sidecarRestarted(2)),
			second: pod("a", sidecarRestarted(1), created(ago(time.Second))),
		},
		"the younger goes before the older": {
			first:  pod("z", created(ago(time.Minute))),
			second: pod("a"),
		},
		"ages of the same magnitude are as one: the UID decides": {
			first:  pod("a", created(ago(70*time.Second))),
			second: pod("z", created(ago(69*time.Second))),
		},
		"one that does not say its age goes first": {
			first:  pod("z", func(p *corev1.Pod) { p.CreationTimestamp.Reset() }),
			second: pod("a", created(ago(time.Second))),
		},
		"one that is yet to come goes before the youngest": {
			first:  pod("z", created(ago(-time.Minute))),
			second: pod("a", created(ago(time.Nanosecond))),
		},
		"equal pods go in the order of their UIDs": {
			first:  pod("a"),
			second: pod("b"),
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := ranking{onNode: tc.onNode, byCost: true, now: noon}
			for _, all := range [][]*corev1.Pod{{tc.first, tc.second}, {tc.second, tc.first}} {
				if got := names(victims(all, 1, r)); got[0] != tc.first.Name {
					t.Errorf("of %v went %v", names(all), got)
				}
			}
		})
	}
}

func TestMagnitude(t *testing.T) {
	for age, want := range map[time.Duration]int{-time.Hour: -1, 0: -1, 1: 0, 2: 1, 1023: 9, 1024: 10} {
		if got := magnitude(age); got != want {
			t.Errorf("%d ns: got %d, want %d", age, got, want)
		}
	}
}

func TestVictimsDoNotHeedCostUnlessToldTo(t *testing.T) {
	all := []*corev1.Pod{pod("a", cost("10")), pod("b", cost("-10"))}
	if got := names(victims(all, 1, ranking{now: noon})); got[0] != "a" {
		t.Errorf("got %v", got)
	}
}

func TestDeletionCost(t *testing.T) {
	for text, want := range map[string]int32{
		"": 0, "0": 0, "7": 7, "-7": -7, "2147483647": 2147483647, "-2147483648": -2147483648,
		"2147483648": 0, "+7": 0, "007": 0, "1.5": 0, "cheap": 0, "-": 0,
	} {
		if got := deletionCost(pod("a", cost(text))); got != want {
			t.Errorf("%q: got %d, want %d", text, got, want)
		}
	}
}

func TestVictimsAreTheSameInWhateverOrderPodsAreListed(t *testing.T) {
	all := many(50)
	for i, p := range all {
		p.Spec.NodeName = []string{"n1", "n2", ""}[i%3]
		ready(ago(time.Duration(i*i) * time.Second))(p)
	}
	r := ranking{onNode: map[string]int{"n1": 17, "n2": 17}, byCost: true, now: noon}
	want := names(victims(all, 20, r))
	for seed := range testworld.Seeds(t, 20) {
		shuffled := slices.Clone(all)
		rand.New(rand.NewPCG(seed, seed)).Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
		before := names(shuffled)
		if d := cmp.Diff(want, names(victims(shuffled, 20, r))); d != "" {
			t.Fatalf("seed %d:\n%s", seed, d)
		}
		if !slices.Equal(before, names(shuffled)) {
			t.Fatal("the pods that were given are reordered")
		}
	}
}

func TestAgeRatios(t *testing.T) {
	young, old, sick := pod("young", created(ago(time.Minute))), pod("old", created(ago(3*time.Minute))), pod("sick", unready)
	held := pod("held", created(ago(2*time.Minute)))
	future, fresh := pod("future", created(ago(-time.Minute))), pod("fresh", created(ago(0)))
	for name, tc := range map[string]struct {
		all, chosen []*corev1.Pod
		want        []float64
	}{
		"ages are compared with that of the youngest": {[]*corev1.Pod{young, old, sick}, []*corev1.Pod{old, young}, []float64{3, 1}},
		"pods that are not ready do not count":        {[]*corev1.Pod{young, old, sick}, []*corev1.Pod{sick}, nil},
		"nor do those that have to wait":              {[]*corev1.Pod{young, old, held}, []*corev1.Pod{old, held}, []float64{3}},
		"where all go, nothing was chosen":            {[]*corev1.Pod{young, old}, []*corev1.Pod{young, old}, nil},
		"a clock that is behind gives no ratio":       {[]*corev1.Pod{future, old}, []*corev1.Pod{old}, nil},
		"a pod of this very moment gives no ratio":    {[]*corev1.Pod{fresh, old}, []*corev1.Pod{old}, nil},
		"without a ready pod there is no ratio":       {[]*corev1.Pod{sick, pod("b", unready)}, []*corev1.Pod{sick}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, ageRatios(tc.all, tc.chosen, map[types.UID]bool{held.UID: true}, noon), cmpopts.EquateEmpty()); d != "" {
				t.Error(d)
			}
		})
	}
}
