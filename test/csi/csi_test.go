package csi

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/fake"
)

const driver = "one.example.com"

// cluster is one with a driver and a claim of it in each state.
type cluster struct {
	*testing.T
	*fake.Clientset
	driver *Driver
}

func begin(t *testing.T, objects []runtime.Object, sidecars ...Sidecar) cluster {
	t.Helper()
	client := fake.NewClientset(objects...)
	d, err := Start(client, driver, sidecars...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Stop)
	return cluster{t, client, d}
}

func eventually(t testing.TB, condition func(context.Context) error) {
	t.Helper()
	var last error
	err := wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, 10*time.Second, true, func(ctx context.Context) (bool, error) {
		last = condition(ctx)
		return last == nil, nil
	})
	if err != nil {
		t.Fatal(last)
	}
}

// comes waits until a volume, attachment or claim is as it is to be.
func comes[T any](c cluster, what string, get func(context.Context, string, metav1.GetOptions) (*T, error), name string, as func(*T) bool) {
	c.Helper()
	eventually(c, func(ctx context.Context) error {
		obj, err := get(ctx, name, metav1.GetOptions{})
		if err == nil && !as(obj) {
			err = fmt.Errorf("%s: %s is %+v", what, name, obj)
		}
		return err
	})
}

func (c cluster) volume(what, name string, as func(*corev1.PersistentVolume) bool) {
	c.Helper()
	comes(c, what, c.CoreV1().PersistentVolumes().Get, name, as)
}

func (c cluster) attachment(what string, as func(*storagev1.VolumeAttachment) bool) {
	c.Helper()
	comes(c, what, c.StorageV1().VolumeAttachments().Get, "va", as)
}

func (c cluster) claim(what string, as func(*corev1.PersistentVolumeClaim) bool) {
	c.Helper()
	comes(c, what, c.CoreV1().PersistentVolumeClaims("ns").Get, "data", as)
}

func (c cluster) gone(name string) {
	c.Helper()
	eventually(c, func(ctx context.Context) error {
		if _, err := c.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{}); err == nil {
			return errors.New(name + " is still there")
		}
		return nil
	})
}

func TestAVolumeIsProvisionedForAClaim(t *testing.T) {
	c := begin(t, []runtime.Object{class(storagev1.VolumeBindingImmediate), claim(driver, nil)})
	c.volume("provisioned", "pvc-1234", func(v *corev1.PersistentVolume) bool {
		storage := v.Spec.Capacity[corev1.ResourceStorage]
		return v.Spec.ClaimRef.UID == "1234" && v.Spec.CSI.Driver == driver && storage.String() == "2Gi" &&
			v.Spec.StorageClassName == "fast" && v.Annotations[provisionedBy] == driver && slices.Equal(v.Finalizers, []string{ProvisionerFinalizer})
	})
}

func TestWhichClaimsGetNoVolumeYet(t *testing.T) {
	for name, tc := range map[string]struct {
		mode  storagev1.VolumeBindingMode
		claim *corev1.PersistentVolumeClaim
		then  func(cluster)
	}{
		"one that waits for its first pod": {storagev1.VolumeBindingWaitForFirstConsumer, claim(driver, nil), func(c cluster) {
			_, err := c.CoreV1().PersistentVolumeClaims("ns").Patch(t.Context(), "data", types.MergePatchType,
				[]byte(`{"metadata":{"annotations":{"`+selectedNode+`":"node"}}}`), metav1.PatchOptions{})
			if err != nil {
				c.Fatal(err)
			}
		}},
		"one whose provisioner is another": {storagev1.VolumeBindingImmediate, claim("two.example.com", nil), func(c cluster) {
			_, err := c.CoreV1().PersistentVolumeClaims("ns").Patch(t.Context(), "data", types.MergePatchType,
				[]byte(`{"metadata":{"annotations":{"`+storageProvisioner+`":"`+driver+`"}}}`), metav1.PatchOptions{})
			if err != nil {
				c.Fatal(err)
			}
		}},
		"one whose driver fails": {storagev1.VolumeBindingImmediate, claim("", nil), func(c cluster) {
			c.driver.Answers(Provision, Answer{Error: "full"})
			_, err := c.CoreV1().PersistentVolumeClaims("ns").Update(t.Context(), claim(driver, nil), metav1.UpdateOptions{})
			if err != nil {
				c.Fatal(err)
			}
			c.driver.Answers(Provision, Answer{})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := begin(t, []runtime.Object{class(tc.mode), tc.claim})
			if err := c.driver.provision(t.Context(), tc.claim); err != nil {
				t.Fatal(err)
			}
			if all, err := c.CoreV1().PersistentVolumes().List(t.Context(), metav1.ListOptions{}); err != nil || len(all.Items) > 0 {
				t.Fatalf("%v: %v", err, all)
			}
			tc.then(c)
			c.volume("provisioned later", "pvc-1234", func(*corev1.PersistentVolume) bool { return true })
		})
	}
}

func TestAReleasedVolumeIsDeletedOnceItIsDetached(t *testing.T) {
	c := begin(t, []runtime.Object{volume(nil), attachment(nil)}, Provisioner)
	released := volume(func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased })
	if _, err := c.CoreV1().PersistentVolumes().UpdateStatus(t.Context(), released, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := c.driver.reclaim(t.Context(), released); err != nil {
		t.Fatal(err)
	}
	c.volume("attached", "pv", func(*corev1.PersistentVolume) bool { return true })
	if err := c.StorageV1().VolumeAttachments().Delete(t.Context(), "va", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.gone("pv")
}

func TestTheFinalizerFollowsTheReclaimPolicy(t *testing.T) {
	c := begin(t, []runtime.Object{volume(func(v *corev1.PersistentVolume) {
		v.Spec.PersistentVolumeReclaimPolicy = corev1.PersistentVolumeReclaimRetain
	})})
	c.volume("kept", "pv", func(v *corev1.PersistentVolume) bool { return len(v.Finalizers) == 0 })
	if _, err := c.CoreV1().PersistentVolumes().Update(t.Context(), volume(func(v *corev1.PersistentVolume) { v.Finalizers = nil }), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.volume("to be deleted", "pv", func(v *corev1.PersistentVolume) bool {
		return slices.Equal(v.Finalizers, []string{ProvisionerFinalizer})
	})
}

func TestAnAttachmentIsAttachedAsItsDriverAnswers(t *testing.T) {
	c := begin(t, []runtime.Object{volume(nil)}, Attacher)
	c.driver.Answers(Attach, Answer{Never: true})
	if _, err := c.StorageV1().VolumeAttachments().Create(t.Context(), attachment(nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	finalizer := "external-attacher/one-example-com"
	c.attachment("no answer", func(va *storagev1.VolumeAttachment) bool {
		return slices.Equal(va.Finalizers, []string{finalizer}) && !va.Status.Attached && va.Status.AttachError == nil
	})
	c.volume("attached", "pv", func(v *corev1.PersistentVolume) bool { return slices.Contains(v.Finalizers, finalizer) })
	c.driver.Answers(Attach, Answer{Error: "no slot"})
	c.attachment("an error", func(va *storagev1.VolumeAttachment) bool {
		return !va.Status.Attached && va.Status.AttachError != nil && va.Status.AttachError.Message == "no slot"
	})
	c.driver.Answers(Attach, Answer{})
	c.attachment("success", func(va *storagev1.VolumeAttachment) bool { return va.Status.Attached && va.Status.AttachError == nil })
}

func TestADeletedAttachmentIsLetGoAsItsDriverAnswers(t *testing.T) {
	c := begin(t, []runtime.Object{volume(nil)}, Attacher)
	c.driver.Answers(Detach, Answer{Error: "still mounted"})
	ending := attachment(func(va *storagev1.VolumeAttachment) {
		va.DeletionTimestamp, va.Finalizers = &metav1.Time{Time: time.Now()}, []string{AttacherFinalizer(driver), "x.example/hold"}
		va.Status.Attached = true
	})
	if _, err := c.StorageV1().VolumeAttachments().Create(t.Context(), ending, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.attachment("an error", func(va *storagev1.VolumeAttachment) bool {
		return va.Status.Attached && va.Status.DetachError != nil && len(va.Finalizers) == 2
	})
	c.driver.Answers(Detach, Answer{})
	c.attachment("let go", func(va *storagev1.VolumeAttachment) bool {
		return !va.Status.Attached && va.Status.DetachError == nil && slices.Equal(va.Finalizers, []string{"x.example/hold"})
	})
}

func TestADeletedVolumeIsLetGoOnceItIsAttachedNowhere(t *testing.T) {
	c := begin(t, []runtime.Object{attachment(nil), volume(func(v *corev1.PersistentVolume) {
		v.DeletionTimestamp, v.Finalizers = &metav1.Time{Time: time.Now()}, []string{AttacherFinalizer(driver), "x.example/hold"}
	})}, Attacher)
	if err := c.StorageV1().VolumeAttachments().Delete(t.Context(), "va", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.volume("let go", "pv", func(v *corev1.PersistentVolume) bool { return slices.Equal(v.Finalizers, []string{"x.example/hold"}) })
}

func TestAClaimIsResizedAsItsDriverAnswers(t *testing.T) {
	c := begin(t, []runtime.Object{volume(nil)}, Resizer)
	c.driver.Answers(Resize, Answer{Error: "too large"})
	if _, err := c.CoreV1().PersistentVolumeClaims("ns").Create(t.Context(), claim("", bound), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.claim("an error", func(c *corev1.PersistentVolumeClaim) bool {
		return len(c.Status.Conditions) == 1 && c.Status.Conditions[0].Message == "too large" &&
			c.Status.AllocatedResourceStatuses[corev1.ResourceStorage] == corev1.PersistentVolumeClaimControllerResizeInfeasible
	})
	c.driver.Answers(Resize, Answer{Never: true})
	c.claim("no answer", func(c *corev1.PersistentVolumeClaim) bool {
		return len(c.Status.Conditions) == 1 && c.Status.Conditions[0].Type == corev1.PersistentVolumeClaimResizing
	})
	c.driver.Answers(Resize, Answer{})
	c.claim("success", func(c *corev1.PersistentVolumeClaim) bool {
		return len(c.Status.Conditions) == 0 && c.Status.Capacity.Storage().String() == "2Gi" && len(c.Status.AllocatedResourceStatuses) == 0
	})
	c.volume("success", "pv", func(v *corev1.PersistentVolume) bool { return v.Spec.Capacity.Storage().String() == "2Gi" })
}

func TestAClaimGetsTheAttributesClassItAsksFor(t *testing.T) {
	gold := "gold"
	c := begin(t, []runtime.Object{volume(nil), claim("", func(c *corev1.PersistentVolumeClaim) {
		bound(c)
		c.Spec.VolumeAttributesClassName = &gold
	})}, Resizer)
	c.claim("success", func(c *corev1.PersistentVolumeClaim) bool {
		return is(c.Status.CurrentVolumeAttributesClassName, gold) && c.Status.ModifyVolumeStatus == nil
	})
	c.volume("success", "pv", func(v *corev1.PersistentVolume) bool { return is(v.Spec.VolumeAttributesClassName, gold) })
}

func TestNames(t *testing.T) {
	for got, want := range map[string]string{
		AttacherFinalizer("ebs.csi.aws.com"):       "external-attacher/ebs-csi-aws-com",
		UniqueName(driver, "handle"):               "kubernetes.io/csi/one.example.com^handle",
		AttachmentName("driver", "handle", "node"): "csi-fdef298eb16db6fa42906ef1ff09a93a7f3028f8290cc9d71628ff91c237bfa7",
	} {
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
