package persistentvolumeprotection

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// has reports the finalizers of the volume, joined to what is easy to compare.
func has(t *testing.T, client *fake.Clientset) func(n int) func() bool {
	return func(n int) func() bool {
		return func() bool {
			v, err := client.CoreV1().PersistentVolumes().Get(t.Context(), "v", metav1.GetOptions{})
			return err == nil && len(v.Finalizers) == n
		}
	}
}

func TestAVolumeIsProtectedAndThenSetFree(t *testing.T) {
	client := fake.NewClientset(volume(corev1.VolumeBound, false))
	shared := informers.NewSharedInformerFactory(client, 0)
	c, err := New(shared.Core().V1().PersistentVolumes(), fixture.Hand(client, nil))
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, client, c.Run, shared)
	finalizers := has(t, client)
	fixture.Eventually(t, "it is protected", finalizers(1))

	volumes := client.CoreV1().PersistentVolumes()
	for _, phase := range []corev1.PersistentVolumePhase{corev1.VolumeBound, corev1.VolumeReleased} {
		if !finalizers(1)() {
			t.Fatal("a bound volume was set free")
		}
		if _, err := volumes.Update(t.Context(), volume(phase, true, Finalizer), metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	fixture.Eventually(t, "it is set free", finalizers(0))
}

func TestErrorsOfUpdate(t *testing.T) {
	resource := corev1.Resource("persistentvolumes")
	for name, tc := range map[string]struct {
		err  error
		fail bool
	}{
		"a volume that is gone is no error":               {apierrors.NewNotFound(resource, "v"), false},
		"one that was bound meanwhile is looked at again": {apierrors.NewConflict(resource, "v", errors.New("changed")), true},
		"a refusal is retried":                            {apierrors.NewForbidden(resource, "v", errors.New("policy")), true},
		"so is a lost answer":                             {errors.New("connection reset"), true},
	} {
		t.Run(name, func(t *testing.T) {
			rig := fixture.New(fake.NewClientset(), noon)
			rig.Fail("update", "persistentvolumes", tc.err)
			c, err := New(rig.In.Core().V1().PersistentVolumes(), rig.Hand())
			if err != nil {
				t.Fatal(err)
			}
			rig.Cache(t, volume(corev1.VolumeReleased, true, Finalizer))
			if got := c.Reconcile(t.Context(), "v").Err(); (got != nil) != tc.fail {
				t.Errorf("got %v", got)
			}
			if err := c.Reconcile(t.Context(), "other").Err(); err != nil {
				t.Errorf("a volume that is not there: %v", err)
			}
		})
	}
}
