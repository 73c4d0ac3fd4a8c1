package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/test/csi"
	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const volumeDriver = "volumes.example.com"

// furnishVolumes makes claims and volumes in all states: provisioned and bound,
// attached and used on a node, released, expanding, waiting for their first pod
// or for a provisioner that nobody runs, and a volume for anybody.
func (c *cluster) furnishVolumes(t *testing.T) {
	ctx := t.Context()
	driver, err := csi.Start(c.client, volumeDriver)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(driver.Stop)
	driver.Answers(csi.Resize, csi.Answer{Never: true})
	for node := range 3 {
		c.patchNode(t, fmt.Sprintf("node-%d", node), `{"metadata":{"annotations":{"volumes.kubernetes.io/controller-managed-attach-detach":"true"}}}`)
	}
	c.class(t, "kept", volumeDriver, storagev1.VolumeBindingImmediate)
	c.class(t, "late", volumeDriver, storagev1.VolumeBindingWaitForFirstConsumer)
	c.class(t, "nobodys", "nobody.example.com", storagev1.VolumeBindingImmediate)
	for name, class := range map[string]string{"used": "kept", "more": "kept", "idle": "kept", "growing": "kept", "old": "kept", "first": "late", "never": "nobodys"} {
		c.wants(t, name, class)
	}
	must(t)(c.client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "anybodys"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: storage("9Gi"), AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadOnlyMany}, PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
			PersistentVolumeSource: corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{Server: "nfs.example.com", Path: "/"}}},
	}, metav1.CreateOptions{}))
	for _, name := range []string{"used", "more", "idle", "growing", "old"} {
		c.claimIs(t, name, corev1.ClaimBound)
	}
	c.claimIs(t, "first", corev1.ClaimPending)
	c.mountsVolumes(t, "used", "more")
	// Where this waits for the resizer, it does so for as long as the test lasts.
	must(t)(c.client.CoreV1().PersistentVolumeClaims("default").Patch(ctx, "growing", types.MergePatchType,
		[]byte(`{"spec":{"resources":{"requests":{"storage":"2Gi"}}}}`), metav1.PatchOptions{}))
	if err := c.client.CoreV1().PersistentVolumeClaims("default").Delete(ctx, "old", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	harness.Eventually(t, time.Minute, func(ctx context.Context) error {
		return c.volumesAre(ctx, map[corev1.PersistentVolumePhase]int{corev1.VolumeBound: 4, corev1.VolumeReleased: 1, corev1.VolumeAvailable: 1})
	})
}

func storage(size string) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
}

func (c *cluster) patchNode(t *testing.T, name, patch string, subresources ...string) {
	t.Helper()
	must(t)(c.client.CoreV1().Nodes().Patch(t.Context(), name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}, subresources...))
}

func (c *cluster) class(t *testing.T, name, provisioner string, mode storagev1.VolumeBindingMode) {
	t.Helper()
	must(t)(c.client.StorageV1().StorageClasses().Create(t.Context(), &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Provisioner: provisioner, VolumeBindingMode: &mode,
		ReclaimPolicy: new(corev1.PersistentVolumeReclaimRetain), AllowVolumeExpansion: new(true),
	}, metav1.CreateOptions{}))
}

func (c *cluster) wants(t *testing.T, name, class string) {
	t.Helper()
	must(t)(c.client.CoreV1().PersistentVolumeClaims("default").Create(t.Context(), &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{Requests: storage("1Gi")}},
	}, metav1.CreateOptions{}))
}

func (c *cluster) claimIs(t *testing.T, name string, phase corev1.PersistentVolumeClaimPhase) {
	t.Helper()
	harness.Eventually(t, time.Minute, func(ctx context.Context) error {
		claim, err := c.client.CoreV1().PersistentVolumeClaims("default").Get(ctx, name, metav1.GetOptions{})
		if err == nil && claim.Status.Phase != phase {
			err = fmt.Errorf("claim %s is %q, want %s", name, claim.Status.Phase, phase)
		}
		return err
	})
}

// mountsVolumes runs a pod with these claims on node-1, and plays its kubelet.
func (c *cluster) mountsVolumes(t *testing.T, claims ...string) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "mounts"}, Spec: harness.Deployment("mounts", 1).Spec.Template.Spec}
	pod.Spec.NodeName = "node-1"
	inUse := ""
	for i, name := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}})
		claim, err := c.client.CoreV1().PersistentVolumeClaims("default").Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		inUse += fmt.Sprintf("%.*s%q", min(i, 1), ",", csi.UniqueName(volumeDriver, claim.Spec.VolumeName))
	}
	c.patchNode(t, "node-1", `{"status":{"volumesInUse":[`+inUse+`]}}`, "status")
	must(t)(c.client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}))
	harness.Eventually(t, time.Minute, func(ctx context.Context) error {
		node, err := c.client.CoreV1().Nodes().Get(ctx, "node-1", metav1.GetOptions{})
		if err == nil && len(node.Status.VolumesAttached) != len(claims) {
			err = fmt.Errorf("node-1 has %v attached", node.Status.VolumesAttached)
		}
		return err
	})
}

func (c *cluster) volumesAre(ctx context.Context, want map[corev1.PersistentVolumePhase]int) error {
	volumes, err := c.client.CoreV1().PersistentVolumes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	got := map[corev1.PersistentVolumePhase]int{}
	for _, volume := range volumes.Items {
		got[volume.Status.Phase]++
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		return fmt.Errorf("volumes are %v, want %v", got, want)
	}
	return nil
}

// stored are the versions of all claims, volumes and attachments.
func (c *cluster) stored(t testing.TB) string {
	t.Helper()
	volumes, err := c.client.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	claims, err := c.client.CoreV1().PersistentVolumeClaims("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	attachments, err := c.client.StorageV1().VolumeAttachments().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text := ""
	for _, v := range volumes.Items {
		text += fmt.Sprintf("volume %s %s %s\n", v.Name, v.Status.Phase, v.ResourceVersion)
	}
	for _, v := range claims.Items {
		text += fmt.Sprintf("claim %s %s %s\n", v.Name, v.Status.Phase, v.ResourceVersion)
	}
	for _, v := range attachments.Items {
		text += fmt.Sprintf("attachment %s %t %s\n", v.Name, v.Status.Attached, v.ResourceVersion)
	}
	return text
}
