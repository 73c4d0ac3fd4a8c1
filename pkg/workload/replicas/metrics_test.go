package replicas

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/component-base/metrics/testutil"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func TestOnlyReplicaSetsThatAreHeldAreCounted(t *testing.T) {
	for name, tc := range map[string]struct {
		kind   func(toolscache.Indexer) Kind
		counts bool
	}{
		"a ReplicaSet":            {func(sets toolscache.Indexer) Kind { return testKind{sets} }, true},
		"a ReplicationController": {func(sets toolscache.Indexer) Kind { return otherKind{testKind{sets}} }, false},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(replicaSet(1))
			b := newBenchOf(t, client, tc.kind)
			before := held(t)
			fixture.HoldForLong(b.Writes, key, corev1.Resource("pods"), noon)
			fixture.Run(t, client, b.Run, b.caches)
			b.Add(key)
			fixture.Eventually(t, "the event", func() bool { return strings.Contains(strings.Join(b.told(), ""), "Warning CacheBehind") })
			if counts := held(t) > before; counts != tc.counts {
				t.Errorf("counts: %t", counts)
			}
		})
	}
}

// held is how often sets have waited for the cache of pods.
func held(t *testing.T) float64 {
	t.Helper()
	n, err := testutil.GetCounterMetricValue(staleSyncSkips.WithLabelValues("", "pods"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
