package app

import (
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/app/options"
)

func TestTheFlagsOfRecyclersAreHeeded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pod.yaml")
	const template = `apiVersion: v1
kind: Pod
metadata: {namespace: recyclers}
spec: {containers: [{name: c, image: own}], volumes: [{name: v}]}
`
	if err := os.WriteFile(path, []byte(template), 0o600); err != nil {
		t.Fatal(err)
	}
	cc := ControllerContext{Config: options.DefaultComponentConfig()}
	o := &cc.Config.PersistentVolumeBinderController.VolumeConfiguration.PersistentVolumeRecyclerConfiguration
	volume := func(source corev1.PersistentVolumeSource) *corev1.PersistentVolume {
		return &corev1.PersistentVolume{Spec: corev1.PersistentVolumeSpec{PersistentVolumeSource: source,
			Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("10Gi")}}}
	}
	host, nfs := volume(corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{}}), volume(corev1.PersistentVolumeSource{NFS: &corev1.NFSVolumeSource{}})
	for name, tc := range map[string]struct {
		set       func()
		host, nfs int64
		in        [2]string
	}{
		"by default":         {func() {}, 300, 300, [2]string{"default", "default"}},
		"minima":             {func() { o.MinimumTimeoutHostPath, o.MinimumTimeoutNFS = 400, 500 }, 400, 500, [2]string{"default", "default"}},
		"increments":         {func() { o.IncrementTimeoutHostPath, o.IncrementTimeoutNFS = 70, 80 }, 700, 800, [2]string{"default", "default"}},
		"a template for one": {func() { o.PodTemplateFilePathHostPath = path }, 300, 300, [2]string{"recyclers", "default"}},
		"and for the other":  {func() { o.PodTemplateFilePathNFS = path }, 300, 300, [2]string{"default", "recyclers"}},
	} {
		t.Run(name, func(t *testing.T) {
			before := *o
			defer func() { *o = before }()
			tc.set()
			all, err := cc.recyclers()
			if err != nil {
				t.Fatal(err)
			}
			onHost, onNFS := all.For(host).Pod(host), all.For(nfs).Pod(nfs)
			if *onHost.Spec.ActiveDeadlineSeconds != tc.host || *onNFS.Spec.ActiveDeadlineSeconds != tc.nfs || onHost.Namespace != tc.in[0] || onNFS.Namespace != tc.in[1] {
				t.Errorf("host path %d in %s, NFS %d in %s", *onHost.Spec.ActiveDeadlineSeconds, onHost.Namespace, *onNFS.Spec.ActiveDeadlineSeconds, onNFS.Namespace)
			}
		})
	}
	for _, file := range []*string{&o.PodTemplateFilePathHostPath, &o.PodTemplateFilePathNFS} {
		*file = "/nonexistent"
		_, err := cc.recyclers()
		if err == nil || err.Error() != "failed to probe volume plugins when starting persistentvolume controller: failed to read file path /nonexistent: open /nonexistent: no such file or directory" {
			t.Errorf("says %v", err)
		}
		*file = ""
	}
}
