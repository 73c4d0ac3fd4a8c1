package persistentvolumeprotection

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func volume(phase corev1.PersistentVolumePhase, deleted bool, finalizers ...string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v", UID: "v-uid", ResourceVersion: "7", Finalizers: finalizers}}
	v.Status.Phase = phase
	if deleted {
		v.DeletionTimestamp = &metav1.Time{Time: noon}
	}
	return v
}

func preBound(v *corev1.PersistentVolume) *corev1.PersistentVolume {
	v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "team", Name: "c", UID: "c-uid"}
	return v
}

func TestPlan(t *testing.T) {
	const update = "update PersistentVolume v"
	for name, tc := range map[string]struct {
		volume *corev1.PersistentVolume
		want   string
	}{
		"a new volume is protected":                   {volume("", false), update},
		"a bound one too":                             {volume(corev1.VolumeBound, false, "a"), update},
		"a protected one is left alone":               {volume(corev1.VolumeAvailable, false, Finalizer), ""},
		"a bound one is held":                         {volume(corev1.VolumeBound, true, Finalizer), ""},
		"an available one goes":                       {volume(corev1.VolumeAvailable, true, Finalizer), update},
		"also when it names a claim":                  {preBound(volume(corev1.VolumeAvailable, true, Finalizer)), update},
		"a pending one goes":                          {preBound(volume(corev1.VolumePending, true, Finalizer)), update},
		"one without a phase goes":                    {volume("", true, Finalizer), update},
		"a released one goes":                         {preBound(volume(corev1.VolumeReleased, true, Finalizer)), update},
		"a failed one goes":                           {volume(corev1.VolumeFailed, true, Finalizer), update},
		"one that only others hold is left to them":   {volume(corev1.VolumeAvailable, true, "a"), ""},
		"no finalizer is added once it is on its way": {volume(corev1.VolumeBound, true, "a"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			if p := plan(tc.volume, noon); fixture.Planned(p) != tc.want || p.Why == "" {
				t.Errorf("wants %q because %q", fixture.Planned(p), p.Why)
			}
		})
	}
}
