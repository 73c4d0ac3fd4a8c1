package selinuxwarning

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// mounted is a volume that containers of a pod mount, by its name in the pod.
type mounted struct {
	name   string
	labels []string
}

// labels returns the volumes that containers of the pod mount, in the order in which they do so
// first, and the SELinux labels that they mount each with. A container that has no options, of
// its own or of the pod, adds no label. Block devices are not mounted.
func labels(pod *corev1.Pod) []mounted {
	var all []mounted
	add := func(mounts []corev1.VolumeMount, own *corev1.SecurityContext) {
		options := optionsOf(pod, own)
		for i := range mounts {
			at := slices.IndexFunc(all, func(m mounted) bool { return m.name == mounts[i].Name })
			if at < 0 {
				at, all = len(all), append(all, mounted{name: mounts[i].Name})
			}
			if m := &all[at]; options != nil && !slices.Contains(m.labels, labelOf(options)) {
				m.labels = append(m.labels, labelOf(options))
			}
		}
	}
	for i := range pod.Spec.InitContainers {
		add(pod.Spec.InitContainers[i].VolumeMounts, pod.Spec.InitContainers[i].SecurityContext)
	}
	for i := range pod.Spec.Containers {
		add(pod.Spec.Containers[i].VolumeMounts, pod.Spec.Containers[i].SecurityContext)
	}
	for i := range pod.Spec.EphemeralContainers {
		add(pod.Spec.EphemeralContainers[i].VolumeMounts, pod.Spec.EphemeralContainers[i].SecurityContext)
	}
	return all
}

// optionsOf returns the options of a container: its own replace the pod's as a whole.
func optionsOf(pod *corev1.Pod, own *corev1.SecurityContext) *corev1.SELinuxOptions {
	switch {
	case own != nil && own.SELinuxOptions != nil:
		return own.SELinuxOptions
	case pod.Spec.SecurityContext != nil:
		return pod.Spec.SecurityContext.SELinuxOptions
	}
	return nil
}

// labelOf writes options as user:role:type:level, and as nothing when all parts are empty.
// Levels are as the user wrote them: s0:c1,c2 is not s0:c2,c1.
func labelOf(o *corev1.SELinuxOptions) string {
	if *o == (corev1.SELinuxOptions{}) {
		return ""
	}
	return strings.Join([]string{o.User, o.Role, o.Type, o.Level}, ":")
}

// recursive reports whether the pod asks that its volumes are labelled file by file.
func recursive(pod *corev1.Pod) bool {
	c := pod.Spec.SecurityContext
	return c != nil && c.SELinuxChangePolicy != nil && *c.SELinuxChangePolicy == corev1.SELinuxChangePolicyRecursive
}
