package volumeattributesclassprotection

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func class(deleted bool, finalizers ...string) *storagev1.VolumeAttributesClass {
	c := &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: "fast", UID: "fast-uid", ResourceVersion: "7", Finalizers: finalizers}}
	if deleted {
		c.DeletionTimestamp = &metav1.Time{Time: noon}
	}
	return c
}

// claim names these classes: in its spec, as current and as target.
func claim(name string, spec, current, target *string) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name, UID: "uid"}}
	c.Spec.VolumeAttributesClassName, c.Status.CurrentVolumeAttributesClassName = spec, current
	if target != nil {
		c.Status.ModifyVolumeStatus = &corev1.ModifyVolumeStatus{TargetVolumeAttributesClassName: *target, Status: corev1.PersistentVolumeClaimModifyVolumePending}
	}
	return c
}

func volume(name string, spec *string) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid"}}
	v.Spec.VolumeAttributesClassName = spec
	return v
}

func TestPlan(t *testing.T) {
	const update = "update VolumeAttributesClass fast"
	claims := []*corev1.PersistentVolumeClaim{claim("b", nil, nil, nil), claim("a", nil, nil, nil)}
	volumes := []*corev1.PersistentVolume{volume("v", nil)}
	for name, tc := range map[string]struct {
		observed
		want, why string
	}{
		"a new class is protected":        {observed{class(false), nil, nil}, update, "it is not protected yet"},
		"a protected one is left alone":   {observed{class(false, Finalizer), claims, nil}, "", "it is protected and nobody deletes it"},
		"one that claims name is held":    {observed{class(true, Finalizer), claims, nil}, "", "it stays while claim team/a and 1 more name it"},
		"one that a volume names is held": {observed{class(true, Finalizer), nil, volumes}, "", "it stays while volume v names it"},
		"one that nothing names goes":     {observed{class(true, "x", Finalizer), nil, nil}, update, "nothing uses it"},
		"one that others hold is left so": {observed{class(true, "x"), nil, nil}, "", "it is being deleted and has no finalizer " + Finalizer},
	} {
		t.Run(name, func(t *testing.T) {
			if p := plan(tc.observed, noon); fixture.Planned(p) != tc.want || p.Why != tc.why {
				t.Errorf("wants %q because %q", fixture.Planned(p), p.Why)
			}
		})
	}
}

func TestClassesThatAreNamed(t *testing.T) {
	fast, slow, none := ptr.To("fast"), ptr.To("slow"), ptr.To("")
	for name, tc := range map[string]struct {
		claim *corev1.PersistentVolumeClaim
		want  []string
	}{
		"no claim names none":               {nil, nil},
		"a claim without one":               {claim("c", nil, nil, nil), nil},
		"an empty name is none":             {claim("c", none, none, none), nil},
		"the one that it wants":             {claim("c", fast, nil, nil), []string{"fast"}},
		"the one that its volume has":       {claim("c", slow, fast, nil), []string{"fast", "slow"}},
		"the one that its volume is to get": {claim("c", nil, nil, fast), []string{"fast"}},
		"each one once":                     {claim("c", fast, fast, fast), []string{"fast"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, ofClaim(tc.claim)); diff != "" {
				t.Error(diff)
			}
		})
	}
	for _, v := range []*corev1.PersistentVolume{nil, volume("v", nil), volume("v", none)} {
		if got := ofVolume(v); got != nil {
			t.Errorf("%v names %v", v, got)
		}
	}
	if got := ofVolume(volume("v", fast)); !cmp.Equal(got, []string{"fast"}) {
		t.Errorf("the volume names %v", got)
	}
}
