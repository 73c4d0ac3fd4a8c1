package e2e

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// TestRollout creates 50 Deployments on 100 simulated nodes under the original
// and under ours, each on a fresh cluster, and logs what each needed. It fails
// when not all becomes available or ours needs clearly more CPU time than the
// original: a quarter is what a busy machine may make of equal work.
// KCM_ROLLOUT_PODS sets the number of pods, 2000 for the figures of the README.
func TestRollout(t *testing.T) {
	pods := 500
	if set := os.Getenv("KCM_ROLLOUT_PODS"); set != "" {
		var err error
		if pods, err = strconv.Atoi(set); err != nil {
			t.Fatalf("KCM_ROLLOUT_PODS=%q: %v", set, err)
		}
	}
	reference := rollout(t, "original", tools(t).ReferenceManager, pods)
	ours := rollout(t, "ours", harness.BuiltBinary(t), pods)
	t.Logf("%d pods, original: %s", pods, reference)
	t.Logf("%d pods, ours:     %s", pods, ours)
	t.Logf("ours / original: time %.2f, CPU %.2f, peak memory %.2f", ours.took.Seconds()/reference.took.Seconds(),
		ours.cpu.Seconds()/reference.cpu.Seconds(), float64(ours.peak)/float64(reference.peak))
	if ours.cpu > reference.cpu*5/4 {
		t.Errorf("ours needed %s of CPU time, the original %s", ours.cpu, reference.cpu)
	}
}

type cost struct {
	took, cpu time.Duration
	peak      int // KiB
}

func (c cost) String() string {
	return fmt.Sprintf("all available after %s, CPU %s, peak memory %d MiB", c.took.Round(10*time.Millisecond), c.cpu.Round(10*time.Millisecond), c.peak/1024)
}

func rollout(t *testing.T, name, path string, pods int) cost {
	var result cost
	t.Run(name, func(t *testing.T) {
		c := newCluster(t)
		p := c.manager(t, path, "--leader-elect=false")
		c.nodes(t, 100)
		const deployments = 50
		before, start := used(t, p), time.Now()
		for i := range deployments {
			harness.CreateDeployment(t, c.client, fmt.Sprintf("web-%d", i), int32(pods/deployments))
		}
		harness.Eventually(t, 10*time.Minute, func(ctx context.Context) error {
			list, err := c.client.AppsV1().Deployments("default").List(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			up := 0
			for _, d := range list.Items {
				up += int(d.Status.AvailableReplicas)
			}
			if up != pods/deployments*deployments {
				return fmt.Errorf("%d of %d pods available", up, pods)
			}
			return nil
		})
		after := used(t, p)
		result = cost{took: time.Since(start), cpu: after.CPU() - before.CPU(), peak: after.PeakKiB}
	})
	if t.Failed() {
		t.FailNow()
	}
	return result
}

func used(t testing.TB, p *harness.Process) harness.Usage {
	t.Helper()
	usage, err := p.Usage()
	if err != nil {
		t.Fatal(err)
	}
	return usage
}
