package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-kcm/kube-controller-manager/test/bench/report"
)

// templateName is the template of all claims.
const templateName = "gpu"

func init() {
	register(&scenario{
		name: "claims", order: 18, quick: 3 * time.Minute, full: 20 * time.Minute,
		about: "Pods with a claim for a device from a template are created at a steady rate. The time runs from the creation of a pod until its status names the claim. A scheduler allocates and reserves the claims. Then the pods end, at the same rate; the time runs until the claim is gone. Only service accounts are made besides.",
		sizes: []size{
			{"pods", 2000, 200, "pods of claims"},
			{"rate", 100, 50, "pods a second"},
		},
		run: runClaims,
	})
}

func runClaims(ctx context.Context, w *world) error {
	w.watch(ctx)
	for i, arg := range w.args {
		if strings.HasPrefix(arg, "--controllers=") {
			w.args[i] = "--controllers=resourceclaim-controller,serviceaccount-controller"
		}
	}
	if err := w.start(ctx, "--leader-elect=false"); err != nil {
		return err
	}
	if err := w.newNamespace(ctx, namespace); err != nil {
		return err
	}
	template := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: templateName}}
	template.Spec.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "one", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu.example.com"}}}
	if _, err := w.Client.ResourceV1().ResourceClaimTemplates(namespace).Create(ctx, template, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the template: %w", err)
	}
	if err := pause(ctx, w.settling()); err != nil {
		return err
	}
	if err := w.claimDevices(ctx, w.sizes["pods"]); err != nil {
		return err
	}
	return w.endPods(ctx, w.sizes["pods"])
}

// claimDevices creates pods at the rate, and waits until the status of each names its claim.
func (w *world) claimDevices(ctx context.Context, count int) error {
	served, err := w.expect(ctx, "pods have their claims", count, w.watches.Core().V1().Pods().Informer(), func(object any) string {
		pod, ok := object.(*corev1.Pod)
		if !ok || len(pod.Status.ResourceClaimStatuses) == 0 {
			return ""
		}
		return pod.Name
	})
	if err != nil {
		return err
	}
	client := w.load().CoreV1().Pods(namespace)
	return w.step(ctx, report.Step{Name: "pods get claims", Objects: count, Unit: "pod"}, func(ctx context.Context) ([]report.Latency, error) {
		err := paced(ctx, count, w.sizes["rate"], func(i int) error {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("claimed-%d", i)}}
			pod.Spec.Containers = []corev1.Container{{Name: "c", Image: firstImage}}
			pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimTemplateName: new(templateName)}}
			served.ask(pod.Name)
			_, err := client.Create(ctx, pod, metav1.CreateOptions{})
			return err
		})
		took, waited := served.wait(ctx)
		return []report.Latency{report.Latencies("created to claim in status", took)}, errors.Join(err, waited)
	})
}

// allocate plays the scheduler for a pod: its claim gets the finalizer, is allocated and
// reserved, and the pod gets a node.
func allocate(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	claims := client.ResourceV1().ResourceClaims(namespace)
	claim, err := claims.Get(ctx, *pod.Status.ResourceClaimStatuses[0].ResourceClaimName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	claim.Finalizers = append(claim.Finalizers, resourceapi.Finalizer)
	if claim, err = claims.Update(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return err
	}
	claim.Status.Allocation = &resourceapi.AllocationResult{Devices: resourceapi.DeviceAllocationResult{
		Results: []resourceapi.DeviceRequestAllocationResult{{Request: "one", Driver: "gpu.example.com", Pool: "pool", Device: pod.Name}}}}
	claim.Status.ReservedFor = []resourceapi.ResourceClaimConsumerReference{{Resource: "pods", Name: pod.Name, UID: pod.UID}}
	if _, err := claims.UpdateStatus(ctx, claim, metav1.UpdateOptions{}); err != nil {
		return err
	}
	return client.CoreV1().Pods(namespace).Bind(ctx, &corev1.Binding{
		ObjectMeta: metav1.ObjectMeta{Name: pod.Name}, Target: corev1.ObjectReference{Kind: "Node", Name: "nowhere"}}, metav1.CreateOptions{})
}

// endPods lets pods end at the rate, and waits until their claims are gone.
func (w *world) endPods(ctx context.Context, count int) error {
	client := w.load()
	pods, err := client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the pods: %w", err)
	}
	if len(pods.Items) != count {
		return fmt.Errorf("there are %d pods, not %d", len(pods.Items), count)
	}
	if err := w.step(ctx, report.Step{Name: "claims are allocated", Objects: count, Unit: "pod"}, func(ctx context.Context) ([]report.Latency, error) {
		return nil, paced(ctx, count, w.sizes["rate"], func(i int) error { return allocate(ctx, client, &pods.Items[i]) })
	}); err != nil {
		return err
	}
	gone, err := w.expectGone(ctx, "claims are gone", count, w.watches.Resource().V1().ResourceClaims().Informer(), func(object any) string {
		if claim, ok := object.(*resourceapi.ResourceClaim); ok {
			return claim.Name
		}
		return ""
	})
	if err != nil {
		return err
	}
	return w.step(ctx, report.Step{Name: "pods end", Objects: count, Unit: "pod"}, func(ctx context.Context) ([]report.Latency, error) {
		err := paced(ctx, count, w.sizes["rate"], func(i int) error {
			gone.ask(*pods.Items[i].Status.ResourceClaimStatuses[0].ResourceClaimName)
			_, err := client.CoreV1().Pods(namespace).Patch(ctx, pods.Items[i].Name, types.MergePatchType,
				[]byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
			return err
		})
		took, waited := gone.wait(ctx)
		return []report.Latency{report.Latencies("ended to claim gone", took)}, errors.Join(err, waited)
	})
}
