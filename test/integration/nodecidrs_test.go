package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const (
	// newNodes register while the process is killed so often; there are hardly more blocks.
	newNodes, killsOfNodes = 250, 10
)

// TestNodesHaveTheirOwnCIDRsThroughKills lets nodes register while the process is killed
// at random moments. Each gets a pod CIDR, and no two the same.
func TestNodesHaveTheirOwnCIDRsThroughKills(t *testing.T) {
	t.Parallel()
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	unlimited := rest.CopyConfig(cp.Admin)
	unlimited.QPS = -1
	client, err := kubernetes.NewForConfig(unlimited)
	if err != nil {
		t.Fatal(err)
	}
	m := cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Args: []string{
		"--controllers=node-ipam-controller", "--allocate-node-cidrs", "--cluster-cidr=10.244.0.0/16", "--service-cluster-ip-range=10.244.0.0/22"}})

	registered := make(chan error, 1)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for i := range newNodes {
			<-tick.C
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i)}}
			if _, err := client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
				registered <- err
				return
			}
		}
		registered <- nil
	}()
	random := rand.New(rand.NewPCG(1, 2))
	for range killsOfNodes {
		pause := time.NewTimer(time.Duration(random.IntN(500)) * time.Millisecond)
		<-pause.C
		m.Kill()
		if err := m.Restart(); err != nil {
			t.Fatal(err)
		}
	}
	if err := <-registered; err != nil {
		t.Fatal(err)
	}
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
