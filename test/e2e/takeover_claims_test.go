package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

// furnishDevices makes a pod whose claim for a device comes from a template, and is
// allocated and reserved, and one whose claim waits for a scheduler.
func (c *cluster) furnishDevices(t *testing.T) {
	ctx, claims := t.Context(), c.client.ResourceV1().ResourceClaims("default")
	template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	template.Spec.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "one", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu.example.com"}}}
	must(t)(c.client.ResourceV1().ResourceClaimTemplates("default").Create(ctx, template, metav1.CreateOptions{}))
	for name, node := range map[string]string{"computes": "node-1", "would-compute": ""} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: harness.Deployment(name, 1).Spec.Template.Spec}
		pod.Spec.NodeName = node
		if node == "" {
			pod.Spec.SchedulingGates = []corev1.PodSchedulingGate{{Name: "example.com/waits"}}
		}
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new("gpu")}}
		must(t)(c.client.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}))
	}
	claim := c.deviceOf(t, "computes")
	c.deviceOf(t, "would-compute")
	claim.Finalizers = append(claim.Finalizers, resourceapi.Finalizer)
	claim, err := claims.Update(ctx, claim, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "one", Driver: "gpu.example.com", Pool: "pool", Device: "a"}}}}
	must(t)(claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{}))
	harness.Eventually(t, time.Minute, func(ctx context.Context) error {
		got, err := claims.Get(ctx, claim.Name, metav1.GetOptions{})
		if err == nil && len(got.Status.ReservedFor) != 1 {
			err = fmt.Errorf("claim %s is reserved for %v", got.Name, got.Status.ReservedFor)
		}
		return err
	})
}

// deviceOf waits until the status of a pod names its claim, and returns that.
func (c *cluster) deviceOf(t *testing.T, pod string) (claim *resourceapi.ResourceClaim) {
	t.Helper()
	harness.Eventually(t, time.Minute, func(ctx context.Context) error {
		got, err := c.client.CoreV1().Pods("default").Get(ctx, pod, metav1.GetOptions{})
		switch {
		case err != nil:
			return err
		case len(got.Status.ResourceClaimStatuses) == 0:
			return fmt.Errorf("pod %s has no claim yet", pod)
		}
		claim, err = c.client.ResourceV1().ResourceClaims("default").Get(ctx, *got.Status.ResourceClaimStatuses[0].ResourceClaimName, metav1.GetOptions{})
		return err
	})
	return claim
}
