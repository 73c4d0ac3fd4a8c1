package nodelifecycle

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// crowded is an API server that answers the patches of pods when so many are under way.
type crowded struct {
	client.Client
	wanted int
	enough chan struct{}

	mu    sync.Mutex
	asked int
}

func (c *crowded) Status() client.SubResourceWriter { return c.SubResource("status") }
func (c *crowded) SubResource(name string) client.SubResourceClient {
	return crowdedStatus{c.Client.SubResource(name), c}
}

type crowdedStatus struct {
	client.SubResourceClient
	c *crowded
}

func (s crowdedStatus) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.SubResourcePatchOption) error {
	if _, is := o.(*corev1.Pod); is {
		s.c.mu.Lock()
		if s.c.asked++; s.c.asked == s.c.wanted {
			close(s.c.enough)
		}
		s.c.mu.Unlock()
		select {
		case <-s.c.enough:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return s.SubResourceClient.Patch(ctx, o, p, opts...)
}

// slow is an API server that answers the patches of nodes one by one.
type slow struct {
	client.Client
	answer  chan struct{}
	waiting *atomic.Int32
}

func (s slow) Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error {
	s.waiting.Add(1)
	defer s.waiting.Add(-1)
	select {
	case <-s.answer:
		return s.Client.Patch(ctx, o, p, opts...)
	case <-ctx.Done():
		return ctx.Err()
	}
}

func TestAPassDoesNotWaitForAllNodes(t *testing.T) {
	const nodes = 4 * nodeWorkers
	fakes := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(fakes, 0)
	hand := fixture.Hand(fakes, record.NewFakeRecorder(1000))
	hand.Clock = clock.RealClock{}
	server := slow{hand.Client, make(chan struct{}), new(atomic.Int32)}
	hand.Client = server
	for i := range nodes {
		if err := fakes.Tracker().Add(node(fmt.Sprintf("n%d", i), ready("True"), cordoned)); err != nil {
			t.Fatal(err)
		}
	}
	c, err := New(factory.Core().V1().Nodes(), factory.Core().V1().Pods(), factory.Coordination().V1().Leases(), hand.Reader(), hand, Options{
		NodeMonitorPeriod: 100 * time.Millisecond, NodeMonitorGracePeriod: time.Hour, NodeStartupGracePeriod: time.Hour, UnhealthyZoneThreshold: 0.55})
	if err != nil {
		t.Fatal(err)
	}
	passes := func() uint64 {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.cluster.round
	}
	fixture.Run(t, fakes, c.Run, factory)
	t.Cleanup(func() { close(server.answer) }) // the end waits for no write
	fixture.Eventually(t, "all workers write, and a pass waits with the other nodes", func() bool {
		return server.waiting.Load() == nodeWorkers && c.nodeRunner.Len() == nodes-nodeWorkers+1
	})
	before := passes()
	for range nodeWorkers / 4 {
		server.answer <- struct{}{}
	}
	fixture.Eventually(t, "the pass has its turn", func() bool { return passes() > before })
}

// The pods of a lost zone are marked side by side, whichever node they are on: with one
// that takes its time, or many, none waits for those of another node.
func TestPodsOfALostZoneAreMarkedSideBySide(t *testing.T) {
	const nodes, each = 12, 6
	fakes := fake.NewClientset()
	factory := informers.NewSharedInformerFactory(fakes, 0)
	hand := fixture.Hand(fakes, record.NewFakeRecorder(1000))
	hand.Clock = clock.RealClock{}
	server := &crowded{Client: hand.Client, wanted: podWorkers, enough: make(chan struct{})}
	reader := hand.Reader()
	hand.Client = server
	for i := range nodes {
		n := node(fmt.Sprintf("n%d", i), ready("True"))
		if err := fakes.Tracker().Add(n); err != nil {
			t.Fatal(err)
		}
		for j := range each {
			if err := fakes.Tracker().Add(podOn(fmt.Sprintf("p%d-%d", i, j), n.Name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	c, err := New(factory.Core().V1().Nodes(), factory.Core().V1().Pods(), factory.Coordination().V1().Leases(), reader, hand, Options{
		NodeMonitorPeriod: 100 * time.Millisecond, NodeMonitorGracePeriod: time.Second, NodeStartupGracePeriod: time.Minute, UnhealthyZoneThreshold: 0.55})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer running.Wait()
	defer stop()
	factory.StartWithContext(ctx)
	running.Go(func() { c.Run(ctx) })

	deadline := time.NewTimer(30 * time.Second)
	defer deadline.Stop()
	select {
	case <-server.enough:
	case <-deadline.C:
		t.Fatalf("fewer than %d pods are marked at once", podWorkers)
	}
}
