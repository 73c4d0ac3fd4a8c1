package protection

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const ours = "kubernetes.io/ours"

func volume(deleted bool, finalizers ...string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", ResourceVersion: "7", Finalizers: finalizers}}
	if deleted {
		v.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	}
	return v
}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		of   *corev1.PersistentVolume
		user string
		want []string // the finalizers that are written; nil if nothing is
		why  string
	}{
		"one without it is protected":              {volume(false), "", []string{ours}, "it is not protected yet"},
		"also one in use":                          {volume(false), "x uses it", []string{ours}, "it is not protected yet"},
		"those of others stay before it":           {volume(false, "a", "b"), "", []string{"a", "b", ours}, "it is not protected yet"},
		"one that has it is left alone":            {volume(false, ours), "", nil, "it is protected and nobody deletes it"},
		"one that goes and has none is left alone": {volume(true, "a"), "", nil, "it is being deleted and has no finalizer kubernetes.io/ours"},
		"one in use is held":                       {volume(true, ours), "x uses it", nil, "it stays while x uses it"},
		"one that nothing uses goes":               {volume(true, ours), "", []string{}, "nothing uses it"},
		"those of others stay in their order":      {volume(true, "a", ours, "b"), "", []string{"a", "b"}, "nothing uses it"},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.of.DeepCopy()
			p := Plan(tc.of, ours, tc.user)
			var got []string
			for _, stage := range p.Stages {
				update := stage.Steps[0].(act.Update).Object
				if got = update.GetFinalizers(); update.GetResourceVersion() != "7" {
					t.Errorf("the update names version %q", update.GetResourceVersion())
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || p.Why != tc.why {
				t.Errorf("because %q: %s", p.Why, diff)
			}
			if diff := cmp.Diff(before, tc.of); diff != "" {
				t.Errorf("the cached object was changed: %s", diff)
			}
			if Concerns(tc.of, ours) != (tc.want != nil || tc.user != "" && tc.want == nil) {
				t.Error("who watches thinks otherwise")
			}
		})
	}
}
