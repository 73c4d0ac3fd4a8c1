package selinuxwarning

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
)

// Informers makes informers whose pods have what is judged here, and nothing else.
var Informers = cache.TrimmedBy(func(object any) (any, error) {
	if pod, ok := object.(*corev1.Pod); ok {
		trim(pod)
		return pod, nil
	}
	return cache.Trim(object)
})

// trim keeps which volumes the containers mount, and with which labels.
func trim(pod *corev1.Pod) {
	*pod = corev1.Pod{
		TypeMeta: pod.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		},
		Spec: corev1.PodSpec{
			Volumes:         trimVolumes(pod.Spec.Volumes),
			InitContainers:  trimContainers(pod.Spec.InitContainers),
			Containers:      trimContainers(pod.Spec.Containers),
			SecurityContext: trimPodContext(pod.Spec.SecurityContext),

			EphemeralContainers: trimEphemeral(pod.Spec.EphemeralContainers),
		},
		Status: corev1.PodStatus{Phase: pod.Status.Phase},
	}
}

// trimVolumes keeps the names of all volumes, and what those are that can be shared.
func trimVolumes(volumes []corev1.Volume) []corev1.Volume {
	for i := range volumes {
		s := &volumes[i].VolumeSource
		s.HostPath, s.EmptyDir, s.GitRepo, s.Secret, s.DownwardAPI, s.ConfigMap, s.Projected, s.Image = nil, nil, nil, nil, nil, nil, nil, nil
		if s.Ephemeral != nil {
			s.Ephemeral = &corev1.EphemeralVolumeSource{} // the claim has a name of its own
		}
	}
	return volumes
}

func trimContainers(containers []corev1.Container) []corev1.Container {
	for i := range containers {
		c := &containers[i]
		containers[i] = corev1.Container{VolumeMounts: trimMounts(c.VolumeMounts), SecurityContext: trimContext(c.SecurityContext)}
	}
	return containers
}

func trimEphemeral(containers []corev1.EphemeralContainer) []corev1.EphemeralContainer {
	for i := range containers {
		c := &containers[i]
		containers[i] = corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{
			VolumeMounts: trimMounts(c.VolumeMounts), SecurityContext: trimContext(c.SecurityContext),
		}}
	}
	return containers
}

func trimMounts(mounts []corev1.VolumeMount) []corev1.VolumeMount {
	for i := range mounts {
		mounts[i] = corev1.VolumeMount{Name: mounts[i].Name}
	}
	return mounts
}

func trimContext(c *corev1.SecurityContext) *corev1.SecurityContext {
	if c == nil || c.SELinuxOptions == nil {
		return nil
	}
	return &corev1.SecurityContext{SELinuxOptions: c.SELinuxOptions}
}

func trimPodContext(c *corev1.PodSecurityContext) *corev1.PodSecurityContext {
	if c == nil || c.SELinuxOptions == nil && c.SELinuxChangePolicy == nil {
		return nil
	}
	return &corev1.PodSecurityContext{SELinuxOptions: c.SELinuxOptions, SELinuxChangePolicy: c.SELinuxChangePolicy}
}
