package hostpath

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestProvisionable(t *testing.T) {
	block, filesystem := corev1.PersistentVolumeBlock, corev1.PersistentVolumeFilesystem
	for name, tc := range map[string]struct {
		mode *corev1.PersistentVolumeMode
		want string
	}{
		"no mode is a file system": {nil, ""},
		"a file system":            {&filesystem, ""},
		"a block device":           {&block, "kubernetes.io/host-path does not support block volume provisioning"},
	} {
		t.Run(name, func(t *testing.T) {
			said := ""
			if err := Provisionable(&corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{VolumeMode: tc.mode}}); err != nil {
				said = err.Error()
			}
			if said != tc.want {
				t.Errorf("says %q", said)
			}
		})
	}
}

func TestFill(t *testing.T) {
	once := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	many := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany, corev1.ReadWriteOnce}
	for name, tc := range map[string]struct {
		asked, want []corev1.PersistentVolumeAccessMode
	}{
		"the modes of the claim stay": {many, many},
		"no modes are one":            {nil, once},
	} {
		t.Run(name, func(t *testing.T) {
			volume := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{AccessModes: tc.asked}}
			Fill(volume, "/tmp/hostpath_pv/u")
			want := &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{AccessModes: tc.want}}
			want.Annotations = map[string]string{"kubernetes.io/createdby": "hostpath-dynamic-provisioner"}
			want.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/tmp/hostpath_pv/u"}
			if diff := cmp.Diff(want, volume); diff != "" {
				t.Error(diff)
			}
		})
	}
}
