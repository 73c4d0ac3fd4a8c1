package csi

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

func TestANodeUsesTheVolumesOfItsPods(t *testing.T) {
	disk := corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "h"}}
	client := fake.NewClientset(boundClaim("data", "pv"), boundVolume(disk), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}})
	n, err := StartNodes(client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Stop)
	uses := func(want string) {
		t.Helper()
		eventually(t, func(ctx context.Context) error {
			node, err := client.CoreV1().Nodes().Get(ctx, "node", metav1.GetOptions{})
			if err == nil && fmt.Sprint(node.Status.VolumesInUse) != want {
				err = fmt.Errorf("the node uses %v, want %s", node.Status.VolumesInUse, want)
			}
			return err
		})
	}
	pods := client.CoreV1().Pods("ns")
	for _, name := range []string{"one", "two"} {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
		pod.Spec.NodeName = "node"
		pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
		if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	uses("[kubernetes.io/csi/one.example.com^h]")
	if err := pods.Delete(t.Context(), "one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	two, err := pods.Get(t.Context(), "two", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	two.Status.Phase = corev1.PodSucceeded
	if _, err := pods.UpdateStatus(t.Context(), two, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	uses("[]")
}
