package volumeattributesclassprotection

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func made(t *testing.T, in informers.SharedInformerFactory, hand reconcile.Hand) *Controller {
	t.Helper()
	core := in.Core().V1()
	c, err := New(Informers{in.Storage().V1().VolumeAttributesClasses(), core.PersistentVolumeClaims(), core.PersistentVolumes()}, hand)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestAClassFollowsItsUsers takes the users of a class away one by one, in each of the
// ways in which a class is named.
func TestAClassFollowsItsUsers(t *testing.T) {
	fast := ptr.To("fast")
	for name, tc := range map[string]struct {
		claim  *corev1.PersistentVolumeClaim
		volume *corev1.PersistentVolume
		// moved is what the claim becomes; it is deleted if nil.
		moved *corev1.PersistentVolumeClaim
	}{
		"a claim goes":                  {claim("c", fast, nil, nil), nil, nil},
		"a claim moves on":              {claim("c", fast, nil, nil), nil, claim("c", ptr.To("slow"), nil, nil)},
		"a claim has moved":             {claim("c", nil, fast, nil), nil, claim("c", nil, ptr.To("slow"), nil)},
		"a claim is not to get it":      {claim("c", nil, nil, fast), nil, claim("c", nil, nil, nil)},
		"a volume goes":                 {nil, volume("v", fast), nil},
		"a claim goes, then the volume": {claim("c", fast, nil, nil), volume("v", fast), nil},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(class(true, Finalizer), claim("other", nil, nil, nil))
			if tc.claim != nil {
				if err := client.Tracker().Add(tc.claim); err != nil {
					t.Fatal(err)
				}
			}
			if tc.volume != nil {
				if err := client.Tracker().Add(tc.volume); err != nil {
					t.Fatal(err)
				}
			}
			shared := informers.NewSharedInformerFactory(client, 0)
			c := made(t, shared, fixture.Hand(client, nil))
			fixture.Run(t, client, c.Run, shared)
			fixture.Eventually(t, "the class was looked at", func() bool { return c.Snapshot().Counts.Syncs > 0 })
			held := func() bool {
				got, err := client.StorageV1().VolumeAttributesClasses().Get(t.Context(), "fast", metav1.GetOptions{})
				return err == nil && len(got.Finalizers) == 1
			}
			var err error
			claims := client.CoreV1().PersistentVolumeClaims("team")
			switch {
			case !held():
				t.Fatal("the class was set free while it is named")
			case tc.moved != nil:
				_, err = claims.Update(t.Context(), tc.moved, metav1.UpdateOptions{})
			case tc.claim != nil:
				err = claims.Delete(t.Context(), "c", metav1.DeleteOptions{})
			}
			if err == nil && tc.volume != nil {
				if !held() {
					t.Fatal("the class was set free while a volume names it")
				}
				err = client.CoreV1().PersistentVolumes().Delete(t.Context(), "v", metav1.DeleteOptions{})
			}
			if err != nil {
				t.Fatal(err)
			}
			fixture.Eventually(t, "the class is set free", func() bool { return !held() })
		})
	}
}

func TestErrorsOfUpdate(t *testing.T) {
	resource := storagev1.Resource("volumeattributesclasses")
	for name, tc := range map[string]struct {
		err  error
		fail bool
	}{
		"a class that is gone is no error":            {apierrors.NewNotFound(resource, "fast"), false},
		"one that has changed is looked at once more": {apierrors.NewConflict(resource, "fast", errors.New("changed")), true},
		"a refusal is retried":                        {apierrors.NewForbidden(resource, "fast", errors.New("policy")), true},
	} {
		t.Run(name, func(t *testing.T) {
			rig := fixture.New(fake.NewClientset(), noon)
			rig.Fail("update", "volumeattributesclasses", tc.err)
			c := made(t, rig.In, rig.Hand())
			rig.Cache(t, class(true, Finalizer))
			if got := c.Reconcile(t.Context(), "fast").Err(); (got != nil) != tc.fail {
				t.Errorf("got %v", got)
			}
			if err := c.Reconcile(t.Context(), "other").Err(); err != nil {
				t.Errorf("a class that is not there: %v", err)
			}
			if got := rig.Requests(); got != "update volumeattributesclasses" {
				t.Errorf("sent %s", got)
			}
		})
	}
}
