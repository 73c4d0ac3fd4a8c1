package selinuxwarning

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

func TestLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		pod        *corev1.SELinuxOptions
		init, main []corev1.Container
		ephemeral  []corev1.Container
		want       []mounted
	}{
		"the options of the pod": {
			pod: level("s0:c1,c2"), main: []corev1.Container{container(nil, "data")},
			want: []mounted{{"data", []string{":::s0:c1,c2"}}}},
		"a container's own replace them as a whole": {
			pod: level("s0:c1,c2"), main: []corev1.Container{container(&corev1.SELinuxOptions{Type: "a_t"}, "data")},
			want: []mounted{{"data", []string{"::a_t:"}}}},
		"all four parts": {
			main: []corev1.Container{container(&corev1.SELinuxOptions{User: "u", Role: "r", Type: "t", Level: "l"}, "data")},
			want: []mounted{{"data", []string{"u:r:t:l"}}}},
		"empty options are no label": {
			pod: level("s0"), main: []corev1.Container{container(&corev1.SELinuxOptions{}, "data")},
			want: []mounted{{"data", []string{""}}}},
		"a container without any is left out": {
			main: []corev1.Container{container(nil, "data"), container(level("s0"), "data")},
			want: []mounted{{"data", []string{":::s0"}}}},
		"nobody has any": {
			main: []corev1.Container{container(nil, "data")}, want: []mounted{{"data", nil}}},
		"one label of two containers": {
			main: []corev1.Container{container(level("s0"), "data"), container(level("s0"), "data")},
			want: []mounted{{"data", []string{":::s0"}}}},
		"two labels": {
			main: []corev1.Container{container(level("s0"), "data", "other"), container(level("s1"), "data")},
			want: []mounted{{"data", []string{":::s0", ":::s1"}}, {"other", []string{":::s0"}}}},
		"volumes in the order in which they are mounted first": {
			main: []corev1.Container{container(level("s1"), "other"), container(level("s0"), "data"), container(level("s1"), "other")},
			want: []mounted{{"other", []string{":::s1"}}, {"data", []string{":::s0"}}}},
		"init and ephemeral containers count": {
			init: []corev1.Container{container(level("s0"), "data")}, main: []corev1.Container{container(level("s1"), "data")},
			ephemeral: []corev1.Container{container(level("s2"), "data")},
			want:      []mounted{{"data", []string{":::s0", ":::s1", ":::s2"}}}},
		"levels are as the user wrote them": {
			main: []corev1.Container{container(level("s0:c1,c2"), "data"), container(level("s0:c2,c1"), "data")},
			want: []mounted{{"data", []string{":::s0:c1,c2", ":::s0:c2,c1"}}}},
		"block devices are not mounted": {
			pod: level("s0"), main: []corev1.Container{{VolumeDevices: []corev1.VolumeDevice{{Name: "data"}}}},
			want: nil},
	} {
		t.Run(name, func(t *testing.T) {
			pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: tc.init, Containers: tc.main}}
			if tc.pod != nil {
				pod.Spec.SecurityContext = &corev1.PodSecurityContext{SELinuxOptions: tc.pod}
			}
			for _, c := range tc.ephemeral {
				pod.Spec.EphemeralContainers = append(pod.Spec.EphemeralContainers, corev1.EphemeralContainer{
					EphemeralContainerCommon: corev1.EphemeralContainerCommon{VolumeMounts: c.VolumeMounts, SecurityContext: c.SecurityContext}})
			}
			if diff := cmp.Diff(tc.want, labels(pod), cmp.AllowUnexported(mounted{})); diff != "" {
				t.Error(diff)
			}
			trim(pod)
			if diff := cmp.Diff(tc.want, labels(pod), cmp.AllowUnexported(mounted{})); diff != "" {
				t.Errorf("after the trim: %s", diff)
			}
		})
	}
}

func TestTheCacheKeepsWhatIsJudged(t *testing.T) {
	pod := withPolicy(aPod("a", "web", level("s0")), corev1.SELinuxChangePolicyRecursive)
	pod.Labels, pod.Annotations = map[string]string{"app": "web"}, map[string]string{"note": "long"}
	pod.Spec.NodeName = "node-a"
	pod.Spec.Containers[0].Image, pod.Spec.Containers[0].Env = "web:1", []corev1.EnvVar{{Name: "A", Value: "b"}}
	pod.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{RunAsUser: ptr.To[int64](1)}
	pod.Spec.Volumes = append(pod.Spec.Volumes,
		corev1.Volume{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}},
		corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{}}}},
		corev1.Volume{Name: "inline", VolumeSource: corev1.VolumeSource{ISCSI: &corev1.ISCSIVolumeSource{IQN: "i"}}})
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.1"}

	want := withPolicy(aPod("a", "web", level("s0")), corev1.SELinuxChangePolicyRecursive)
	want.Spec.Containers[0] = container(nil, "data")
	want.Spec.Volumes = append(want.Spec.Volumes, corev1.Volume{Name: "settings"},
		corev1.Volume{Name: "scratch", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}, pod.Spec.Volumes[3])
	want.Status.Phase = corev1.PodRunning
	trim(pod)
	if diff := cmp.Diff(want, pod); diff != "" {
		t.Error(diff)
	}
}
