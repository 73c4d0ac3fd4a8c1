package ephemeralvolume

import (
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var web = key{Namespace: "team", Name: "web"}

func rigged(t *testing.T, live ...runtime.Object) (*fixture.Rig, *Controller) {
	t.Helper()
	rig := fixture.New(fake.NewClientset(live...), noon)
	core := rig.In.Core().V1()
	c, err := New(core.Pods(), core.PersistentVolumeClaims(), rig.Hand(), 5)
	if err != nil {
		t.Fatal(err)
	}
	return rig, c
}

func TestWhatBecomesOfACreation(t *testing.T) {
	claims := corev1.Resource("persistentvolumeclaims")
	const notOwner = "Warning FailedBinding ephemeral volume one: PVC team/web-one was not created for pod team/web (pod is not owner)"
	quota, ends := apierrors.NewForbidden(claims, "web-one", errors.New("exceeded quota")), ending("web-one")
	for name, tc := range map[string]struct {
		live   []runtime.Object
		cached []runtime.Object
		err    error
		fail   bool
		sent   string
		told   string
	}{
		"it is made": {sent: "2 create persistentvolumeclaims"},
		"a quota forbids it": {err: quota, fail: true, sent: "2 create persistentvolumeclaims",
			told: "Warning FailedBinding ephemeral volume one: create PVC web-one: " + quota.Error() + "; Warning FailedBinding ephemeral volume two: create PVC web-two: " + quota.Error()},
		"the pod has it, and the cache is behind": {live: []runtime.Object{claim("web-one", "web-uid")},
			sent: "create persistentvolumeclaims, get persistentvolumeclaims, create persistentvolumeclaims"},
		"somebody else has just taken the name": {live: []runtime.Object{claim("web-one", "old-uid")}, fail: true, told: notOwner,
			sent: "create persistentvolumeclaims, get persistentvolumeclaims, create persistentvolumeclaims"},
		"somebody else has the name": {cached: []runtime.Object{claim("web-one", "")}, fail: true, told: notOwner,
			sent: "create persistentvolumeclaims"},
		"the namespace is ending": {err: ends, fail: true, sent: "2 create persistentvolumeclaims",
			told: "Warning FailedBinding ephemeral volume one: create PVC web-one: " + ends.Error() + "; Warning FailedBinding ephemeral volume two: create PVC web-two: " + ends.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			rig, c := rigged(t, tc.live...)
			if tc.err != nil {
				rig.Fail("create", "persistentvolumeclaims", tc.err)
			}
			rig.Cache(t, append(tc.cached, pod("one", "two"))...)
			if got := c.Reconcile(t.Context(), web).Err(); (got != nil) != tc.fail {
				t.Errorf("got %v", got)
			}
			if got := rig.Requests(); got != tc.sent {
				t.Errorf("sent %s", got)
			}
			if got := rig.Told(); got != tc.told {
				t.Errorf("told %s", got)
			}
		})
	}
}

// ending is how the API server refuses what is created in a namespace that is being deleted.
func ending(name string) error {
	err := apierrors.NewForbidden(corev1.Resource("persistentvolumeclaims"), name, errors.New("the namespace is being terminated"))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: corev1.NamespaceTerminatingCause})
	return err
}

func TestAPodIsWokenOnceAndByEachClaimThatGoes(t *testing.T) {
	other := pod("one")
	other.UID = "new-uid"
	for name, tc := range map[string]struct {
		change runner.Change[corev1.Pod]
		want   int
	}{
		"a new pod":                 {runner.Change[corev1.Pod]{New: pod("one")}, 1},
		"one without such volumes":  {runner.Change[corev1.Pod]{New: pod()}, 0},
		"one that is being deleted": {runner.Change[corev1.Pod]{New: leaving(pod("one"))}, 0},
		"a change of a pod":         {runner.Change[corev1.Pod]{Old: pod("one"), New: ended(pod("one"))}, 0},
		"another pod of the name":   {runner.Change[corev1.Pod]{Old: pod("one"), New: other}, 1},
		"a pod that is gone":        {runner.Change[corev1.Pod]{Old: pod("one")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			_, c := rigged(t)
			podChanged(tc.change, c.Runner)
			if c.Len() != tc.want {
				t.Errorf("%d keys wait", c.Len())
			}
		})
	}
	renewed := claim("web-one", "")
	renewed.UID = "new-uid"
	for name, tc := range map[string]struct {
		change runner.Change[corev1.PersistentVolumeClaim]
		want   int
	}{
		"a claim that goes":              {runner.Change[corev1.PersistentVolumeClaim]{Old: claim("web-one", "")}, 1},
		"a claim of no pod":              {runner.Change[corev1.PersistentVolumeClaim]{Old: claim("other", "")}, 0},
		"a new claim":                    {runner.Change[corev1.PersistentVolumeClaim]{New: claim("web-one", "")}, 0},
		"a claim that changes":           {runner.Change[corev1.PersistentVolumeClaim]{Old: claim("web-one", ""), New: deleted(claim("web-one", ""))}, 0},
		"another claim of the name":      {runner.Change[corev1.PersistentVolumeClaim]{Old: claim("web-one", ""), New: renewed}, 1},
		"a claim that is only mentioned": {runner.Change[corev1.PersistentVolumeClaim]{Old: claim("data", "")}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			rig, c := rigged(t)
			rig.Cache(t, pod("one"))
			c.claimChanged(tc.change, c.Runner)
			if c.Len() != tc.want {
				t.Errorf("%d keys wait", c.Len())
			}
		})
	}
}

func TestAPodGetsItsClaimWhenTheNameIsFree(t *testing.T) {
	client := fake.NewClientset(pod("one"), claim("web-one", "old-uid"))
	rig := fixture.New(client, noon)
	core := rig.In.Core().V1()
	c, err := New(core.Pods(), core.PersistentVolumeClaims(), fixture.Hand(client, rig.Events), 5)
	if err != nil {
		t.Fatal(err)
	}
	fixture.Run(t, client, c.Run, rig.In)
	fixture.Eventually(t, "the pod has an event", func() bool { return len(rig.Events.Events) > 0 })
	claims := client.CoreV1().PersistentVolumeClaims("team")
	if got, err := claims.Get(t.Context(), "web-one", metav1.GetOptions{}); err != nil || got.OwnerReferences[0].UID != "old-uid" {
		t.Fatalf("the claim of another pod is %v, %v", got, err)
	}
	if err := claims.Delete(t.Context(), "web-one", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	fixture.Eventually(t, "the pod has its own claim", func() bool {
		got, err := claims.Get(t.Context(), "web-one", metav1.GetOptions{})
		return err == nil && metav1.IsControlledBy(got, pod())
	})
}
