package deployment

import (
	"flag"
	"fmt"
	"os"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

var update = flag.Bool("update", false, "write the golden transcript again")

func scaleTo(n int32) change {
	return change{fmt.Sprintf("scales to %d", n), func(d *appsv1.Deployment) { d.Spec.Replicas = &n }}
}

func imageTo(name string) change { return change{"sets image " + name, image(name)} }

func pauses(is bool) change {
	return change{fmt.Sprintf("pauses: %v", is), func(d *appsv1.Deployment) { d.Spec.Paused = is }}
}

// story draws what the user does: some changes in the middle of each other, and
// a good image, not paused, in the end.
func (s *sim) story(strategies bool) []change {
	images := []string{"v1", "v2", "v3", badImage}
	var all []change
	for range 2 + s.Rand.IntN(5) {
		switch s.Rand.IntN(6) {
		case 0, 1:
			all = append(all, imageTo(images[s.Rand.IntN(len(images))]))
		case 2, 3:
			all = append(all, scaleTo(int32(s.Rand.IntN(12))))
		case 4:
			all = append(all, pauses(true), imageTo(images[s.Rand.IntN(len(images))]), scaleTo(int32(s.Rand.IntN(9))), pauses(false))
		case 5:
			if strategies {
				all = append(all, change{"other fenceposts", posts(fmt.Sprint(s.Rand.IntN(4)), fmt.Sprint(s.Rand.IntN(4)))})
			} else {
				all = append(all, change{"asks for the last revision", annotated(appsv1.DeprecatedRollbackTo, "0")})
			}
		}
	}
	last := change{"sets image v9 for good", func(d *appsv1.Deployment) {
		image("v9")(d)
		delete(d.Annotations, appsv1.DeprecatedRollbackTo)
	}}
	return append(all, last, scaleTo(int32(1+s.Rand.IntN(8))))
}

func TestRolloutsKeepTheirBoundsInAnyOrder(t *testing.T) {
	fences := [][2]string{{"25%", "25%"}, {"1", "0"}, {"0", "1"}, {"2", "1"}, {"100%", "0"}, {"0", "100%"}, {"30%", "50%"}, {"0", "0"}}
	for seed := range testworld.Seeds(t, 400) {
		fence := fences[seed%uint64(len(fences))]
		d := deploy(int32(1+seed%10), posts(fence[0], fence[1]), func(d *appsv1.Deployment) { d.Spec.RevisionHistoryLimit = ptr.To(int32(seed % 3)) })
		run(t, seed, d, (&sim{World: testworld.New(seed + 1000)}).story(seed%2 == 0))
	}
}

func TestRecreateNeverMixesVersionsInAnyOrder(t *testing.T) {
	for seed := range testworld.Seeds(t, 200) {
		run(t, seed, deploy(int32(1+seed%5), recreateStrategy), (&sim{World: testworld.New(seed + 5000)}).story(false))
	}
}

func run(t *testing.T, seed uint64, d *appsv1.Deployment, changes []change) *sim {
	t.Helper()
	s := newSim(seed, d, changes)
	if err := s.Run(3000); err != nil {
		t.Fatalf("seed %d: %v", seed, err)
	}
	if wrong := s.settledWell(); wrong != "" {
		t.Fatalf("seed %d settled, but %s\n%s", seed, wrong, s.Transcript())
	}
	if did := s.stepDeployment(); did != "" {
		t.Fatalf("seed %d settled, but there was more to do: %s\n%s", seed, did, s.Transcript())
	}
	return s
}

func TestARolloutReadsLikeThis(t *testing.T) {
	s := run(t, 7, deploy(4), []change{imageTo("v2"), scaleTo(6), imageTo(badImage), pauses(true), imageTo("v3"), pauses(false)})
	got := s.Transcript() + "\n"
	const golden = "testdata/rollout.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	check(t, got, string(want))
}
