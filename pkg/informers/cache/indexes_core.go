package cache

import (
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/nodes"
	"github.com/kube-kcm/kube-controller-manager/pkg/volumes"
)

// Yes is the only value of the indexes that hold a subset of a resource.
const Yes = "yes"

var (
	// TokensByServiceAccount finds the token secrets of a service account by its namespace/name.
	TokensByServiceAccount = Index{"tokensByServiceAccount", func(object any) ([]string, error) {
		secret, ok := object.(*corev1.Secret)
		if !ok || secret.Type != corev1.SecretTypeServiceAccountToken || secret.Annotations[corev1.ServiceAccountNameKey] == "" {
			return nil, nil
		}
		return []string{secret.Namespace + "/" + secret.Annotations[corev1.ServiceAccountNameKey]}, nil
	}}
	// PodsByClaim finds pods by the namespace/name of each claim that their volumes
	// name, those of generic ephemeral volumes included. Whether the pod owns such a
	// claim is for the caller to see.
	PodsByClaim = Index{"podsByClaim", func(object any) ([]string, error) {
		pod, ok := object.(*corev1.Pod)
		if !ok {
			return nil, nil
		}
		var claims []string
		for i := range pod.Spec.Volumes {
			if name, _ := volumes.ClaimOf(pod, &pod.Spec.Volumes[i]); name != "" {
				claims = append(claims, pod.Namespace+"/"+name)
			}
		}
		return claims, nil
	}}
	// AttachmentsByVolume finds VolumeAttachments by the name of their PersistentVolume.
	AttachmentsByVolume = Index{"attachmentsByVolume", func(object any) ([]string, error) {
		if va, ok := object.(*storagev1.VolumeAttachment); ok && va.Spec.Source.PersistentVolumeName != nil {
			return []string{*va.Spec.Source.PersistentVolumeName}, nil
		}
		return nil, nil
	}}
	// TerminatedPods finds the pods that count as terminated under Yes.
	TerminatedPods = subset("terminatedPods", func(pod *corev1.Pod) bool {
		return CountsAsTerminated(pod)
	})
	// UnscheduledTerminatingPods finds the pods under Yes that are being deleted and were never bound to a node.
	UnscheduledTerminatingPods = subset("unscheduledTerminatingPods", func(pod *corev1.Pod) bool {
		return pod.DeletionTimestamp != nil && pod.Spec.NodeName == ""
	})
	// OutOfServiceNodes finds the nodes under Yes that carry the out-of-service taint.
	OutOfServiceNodes = subset("outOfServiceNodes", nodes.OutOfService)
)

// CountsAsTerminated reports whether the pod is in none of the phases before its end. One
// in a phase that nobody knows counts as well.
func CountsAsTerminated(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodPending, corev1.PodRunning, corev1.PodUnknown:
		return false
	}
	return true
}

// subset returns an index that holds the objects for which in is true, under Yes.
func subset[T any, P interface {
	*T
	metav1.Object
}](name string, in func(P) bool) Index {
	return Index{name, func(object any) ([]string, error) {
		if o, ok := object.(P); ok && in(o) {
			return []string{Yes}, nil
		}
		return nil, nil
	}}
}
