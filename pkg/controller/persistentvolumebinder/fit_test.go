package persistentvolumebinder

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhyAClaimCannotHaveTheVolumeThatItNames(t *testing.T) {
	for name, tc := range map[string]struct {
		volume *corev1.PersistentVolume
		claim  *corev1.PersistentVolumeClaim
		want   string
	}{
		"it can":                     {volume("v"), claim("c"), ""},
		"of the very size":           {volume("v"), claim("c", wants("10Gi")), ""},
		"less than a byte too small": {volume("v", holds("1500m")), claim("c", wants("1600m")), ""},
		"more than that":             {volume("v", holds("1500m")), claim("c", wants("2600m")), "requested PV is too small"},
		"it is being deleted":        {volume("v", ending, holds("1Gi")), claim("c"), `the volume is marked for deletion "v"`},
		"it is too small":            {volume("v", holds("1Gi"), ofClass("a")), claim("c"), "requested PV is too small"},
		"another class":              {volume("v", ofClass("a"), attributes("gold")), claim("c", wantsClass("b")), "storageClassName does not match"},
		"the class of an annotation": {volume("v", ofClass("a")), claim("c", wantsClass("b"), says(corev1.BetaStorageClassAnnotation, "a")), ""},
		"other attributes":           {volume("v", attributes("gold"), block), claim("c"), "volumeAttributesClassName does not match"},
		"no attributes are none":     {volume("v", attributes("")), claim("c"), ""},
		"another volume mode":        {volume("v", block, access(corev1.ReadWriteMany)), claim("c"), "incompatible volumeMode"},
		"other access modes":         {volume("v", access(corev1.ReadWriteMany)), claim("c"), "incompatible accessMode"},
		"more access modes":          {volume("v", access(corev1.ReadWriteMany, corev1.ReadWriteOnce)), claim("c"), ""},
		"asks for one mode twice":    {volume("v"), claim("c", wantsAccess(corev1.ReadWriteOnce, corev1.ReadWriteOnce)), ""},
	} {
		if got := mismatch(tc.volume, tc.claim); got != tc.want {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

func TestWhichClaimAFreeVolumeIsFor(t *testing.T) {
	broken := func(c *corev1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "disk", Operator: "?"}}}
	}
	fast := volume("v", labelled("disk", "fast"))
	for name, tc := range map[string]struct {
		volume *corev1.PersistentVolume
		claim  *corev1.PersistentVolumeClaim
		want   bool
	}{
		"one that asks for less":           {volume("v"), claim("c"), true},
		"one of the very size":             {volume("v"), claim("c", wants("10Gi")), true},
		"a part of a byte too small":       {volume("v", holds("1500m")), claim("c", wants("1600m")), false},
		"one of another class":             {volume("v"), claim("c", wantsClass("a")), false},
		"one that selects its labels":      {fast, claim("c", selects("disk", "fast")), true},
		"one that selects others":          {fast, claim("c", selects("disk", "slow")), false},
		"one whose selector means nothing": {fast, claim("c", broken), false},
	} {
		if got := fits(tc.volume, tc.claim); got != tc.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
