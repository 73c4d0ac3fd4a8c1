package hostpath

import (
	"errors"
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

func TestAVolumeSaysWhereItIsAndWhatMadeIt(t *testing.T) {
	want := &corev1.PersistentVolume{}
	want.Annotations = map[string]string{"kubernetes.io/createdby": "hostpath-dynamic-provisioner"}
	want.Spec.HostPath = &corev1.HostPathVolumeSource{Path: "/tmp/hostpath_pv/u"}
	got := Volume("/tmp/hostpath_pv/u")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if directory, err := Directory(got); directory != "/tmp/hostpath_pv/u" || err != nil {
		t.Errorf("got %q, %v", directory, err)
	}
	if directory, err := Directory(&corev1.PersistentVolume{}); directory != "" || !errors.Is(err, errNoPath) {
		t.Errorf("got %q, %v", directory, err)
	}
}
