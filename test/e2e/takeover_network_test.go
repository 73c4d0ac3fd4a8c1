package e2e

//lint:file-ignore SA1019 Endpoints of the old API are mirrored

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// ranges are the flags with which nodes get ranges of both families.
var ranges = []string{
	"--allocate-node-cidrs=true", "--cluster-cidr=10.244.0.0/16,fd00:10:244::/56", "--service-cluster-ip-range=10.0.0.0/24",
	"--node-cidr-mask-size-ipv4=25", "--node-cidr-mask-size-ipv6=72",
}

// furnishNetwork waits until all nodes have their ranges, and makes Endpoints that
// somebody else keeps, of more than one subset, for a Service without a selector.
func (c *cluster) furnishNetwork(t *testing.T) {
	ctx := t.Context()
	harness.Eventually(t, time.Minute, func(ctx context.Context) error {
		nodes, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, node := range nodes.Items {
			if len(node.Spec.PodCIDRs) != 2 {
				return fmt.Errorf("node %s has the ranges %v", node.Name, node.Spec.PodCIDRs)
			}
		}
		return nil
	})
	service := harness.Service("legacy")
	service.Spec.Selector = nil
	must(t)(c.client.CoreV1().Services("default").Create(ctx, service, metav1.CreateOptions{}))
	must(t)(c.client.CoreV1().Endpoints("default").Create(ctx, &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: "legacy", Labels: map[string]string{"kept-by": "hand"}, Annotations: map[string]string{"example.com/note": "kept"}},
		Subsets: []corev1.EndpointSubset{
			{Addresses: []corev1.EndpointAddress{{IP: "192.0.2.1"}, {IP: "192.0.2.2", Hostname: "two"}}, Ports: []corev1.EndpointPort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}}},
			{NotReadyAddresses: []corev1.EndpointAddress{{IP: "192.0.2.3"}}, Ports: []corev1.EndpointPort{{Name: "http", Port: 8080, Protocol: corev1.ProtocolTCP}}},
			{Addresses: []corev1.EndpointAddress{{IP: "2001:db8::1"}}, Ports: []corev1.EndpointPort{{Name: "http", Port: 80, Protocol: corev1.ProtocolTCP}}},
		},
	}, metav1.CreateOptions{}))
	harness.Eventually(t, time.Minute, func(ctx context.Context) error {
		slices, err := c.client.DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=legacy"})
		if err == nil && len(slices.Items) != 3 {
			err = fmt.Errorf("%d EndpointSlices mirror legacy", len(slices.Items))
		}
		return err
	})
}
