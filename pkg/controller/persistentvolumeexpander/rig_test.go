package persistentvolumeexpander

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// failNth makes the nth patch of a resource fail.
func failNth(client *fake.Clientset, resource string, nth int, err error) {
	patches := 0
	client.PrependReactor("patch", resource, func(clienttesting.Action) (bool, runtime.Object, error) {
		patches++
		return patches == nth, nil, err
	})
}

// running is the controller on a fake API server that has these objects.
func running(t *testing.T, objects ...runtime.Object) *fixture.Rig {
	t.Helper()
	r := fixture.New(fake.NewClientset(objects...), noon)
	c, err := New(r.In.Core().V1().PersistentVolumeClaims(), r.In.Core().V1().PersistentVolumes(), fixture.Hand(r.Client, r.Events))
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, r.Client, c.Run, r.In)
	return r
}

const waiting = "Normal ExternalExpanding waiting for an external controller to expand this PVC"

func TestAClaimIsWokenByItsSizeAndByItsVolume(t *testing.T) {
	small, misbound := claim("1Gi", "1Gi"), volume("1Gi", csi)
	misbound.Spec.ClaimRef.UID = "another"
	unbound := claim("2Gi", "1Gi")
	unbound.Name, unbound.Status.Phase = "pending", corev1.ClaimPending
	r := running(t, small, unbound, misbound)
	claims, volumes := r.Client.CoreV1().PersistentVolumeClaims("team"), r.Client.CoreV1().PersistentVolumes()

	larger := claim("2Gi", "1Gi")
	if _, err := claims.Update(t.Context(), larger, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := volumes.Update(t.Context(), volume("1Gi", csi), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the volume is that of the claim", func() bool { return strings.Contains(r.Told(), waiting) })
	if err := volumes.Delete(t.Context(), "pv", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	largest := claim("3Gi", "1Gi")
	if _, err := claims.Update(t.Context(), largest, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := volumes.Create(t.Context(), volume("1Gi", csi), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the volume is there", func() bool { return strings.Contains(r.Told(), waiting) })
}
