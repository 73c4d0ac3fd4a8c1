package integration

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const (
	// newNodes register while leaders are killed so often; there are hardly more blocks.
	newNodes, killsOfNodes = 250, 10
	// inOffice is how long a leader goes on at most.
	inOffice = 500 * time.Millisecond
)

// TestNodesHaveTheirOwnCIDRsThroughKills lets nodes register while whoever leads is killed
// before, while or after it serves what has gathered, and a standby goes on when the lease
// has run out. Each node gets a pod CIDR, and no two the same.
func TestNodesHaveTheirOwnCIDRsThroughKills(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	unlimited := rest.CopyConfig(cp.Admin)
	unlimited.QPS = -1
	client, err := kubernetes.NewForConfig(unlimited)
	if err != nil {
		t.Fatal(err)
	}
	options := harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{
		"--controllers=node-ipam-controller", "--allocate-node-cidrs", "--cluster-cidr=10.244.0.0/16", "--service-cluster-ip-range=10.244.0.0/22",
		"--leader-elect=true", "--leader-elect-lease-duration=2s", "--leader-elect-renew-deadline=1500ms", "--leader-elect-retry-period=200ms"}}
	managers := []*harness.Manager{cp.StartManager(t, options), cp.StartManager(t, options)}

	registered := registerNodes(t.Context(), client)
	random := rand.New(rand.NewPCG(1, 2))
	last := ""
	for range killsOfNodes {
		served := firstServed(t, client)
		last = leads(t, client, last)
		killed := servingCIDRs(t, managers)
		office := time.NewTimer(time.Duration(random.Int64N(int64(inOffice))))
		if random.IntN(2) == 0 {
			served = nil
		}
		select {
		case <-served: // and the next writes are under way
			office.Reset(time.Duration(random.Int64N(int64(10 * time.Millisecond))))
			<-office.C
		case <-office.C:
		}
		killed.Kill()
		without, err := nodesWithoutCIDRs(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("a leader is killed while %d nodes have no pod CIDR", without)
		if err := killed.Restart(); err != nil { // as the standby of the one that takes over
			t.Fatal(err)
		}
	}
	leads(t, client, last)
	if err := <-registered; err != nil {
		t.Fatal(err)
	}
	eachHasItsOwnCIDR(t, client)
}

func eachHasItsOwnCIDR(t testing.TB, client kubernetes.Interface) {
	t.Helper()
	harness.Eventually(t, patient, func(ctx context.Context) error {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		owners := map[string]string{}
		for i := range nodes.Items {
			name, cidr := nodes.Items[i].Name, nodes.Items[i].Spec.PodCIDR
			if cidr == "" {
				return fmt.Errorf("%s has no pod CIDR", name)
			}
			if owners[cidr] != "" {
				t.Fatalf("%s and %s both have %s", name, owners[cidr], cidr)
			}
			owners[cidr] = name
		}
		if len(owners) != newNodes {
			return fmt.Errorf("%d nodes have a pod CIDR", len(owners))
		}
		return nil
	})
}

func registerNodes(ctx context.Context, client kubernetes.Interface) <-chan error {
	registered := make(chan error, 1)
	go func() {
		tick := time.NewTicker(100 * time.Millisecond)
		defer tick.Stop()
		for i := range newNodes {
			<-tick.C
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)}}
			if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
				registered <- err
				return
			}
		}
		registered <- nil
	}()
	return registered
}

// firstServed is closed when a node gets its pod CIDR from now on.
func firstServed(t testing.TB, client kubernetes.Interface) <-chan struct{} {
	t.Helper()
	changes, err := client.CoreV1().Nodes().Watch(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		defer changes.Stop()
		for change := range changes.ResultChan() {
			if node, is := change.Object.(*corev1.Node); is && change.Type == watch.Modified && node.Spec.PodCIDR != "" {
				return
			}
		}
	}()
	return served
}

func nodesWithoutCIDRs(ctx context.Context, client kubernetes.Interface) (without int, err error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	for i := range nodes.Items {
		if nodes.Items[i].Spec.PodCIDR == "" {
			without++
		}
	}
	return without, nil
}

// servingCIDRs is the one of the managers that leads.
func servingCIDRs(t testing.TB, managers []*harness.Manager) (leader *harness.Manager) {
	t.Helper()
	harness.Eventually(t, patient, func(context.Context) error {
		for _, m := range managers {
			_, body, err := m.Get("/healthz?verbose")
			if err != nil {
				return err
			}
			if strings.Contains(body, "node-ipam-controller") { // a standby has no controllers
				leader = m
				return nil
			}
		}
		return errors.New("nobody leads")
	})
	return leader
}
