package pods

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FromTemplate returns a new pod of owner with the labels, annotations,
// finalizers and spec of the template. The server completes its name; a caller
// that names its pods sets Name and clears GenerateName.
func FromTemplate(template *corev1.PodTemplateSpec, owner metav1.Object, ref *metav1.OwnerReference) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace:    owner.GetNamespace(),
			GenerateName: NamePrefix(owner.GetName()),
			Labels:       maps.Clone(template.Labels),
			Annotations:  maps.Clone(template.Annotations),
			Finalizers:   slices.Clone(template.Finalizers),
		},
		Spec: *template.Spec.DeepCopy(),
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	if ref != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*ref}
	}
	return pod
}

// NamePrefix is the generateName of the pods of an owner of this name: the name
// and a dash, or only the name where the API would refuse that. The server cuts
// a long prefix to make room for its suffix.
func NamePrefix(owner string) string {
	if prefix := owner + "-"; len(validation.NameIsDNSSubdomain(prefix, true)) == 0 {
		return prefix
	}
	return owner
}
