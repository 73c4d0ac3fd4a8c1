package resourceclaim

import (
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
)

var (
	// podsByClaim finds pods by the namespace/name of each ResourceClaim that their spec names
	// or their status records.
	podsByClaim = podIndex("podsByResourceClaim", func(pod *corev1.Pod) []string {
		if len(pod.Spec.ResourceClaims) == 0 {
			return nil
		}
		return ownerOfPod(pod).claimNames()
	})
	// podsByTemplate finds pods by the namespace/name of each template that they name.
	podsByTemplate = podIndex("podsByResourceClaimTemplate", func(pod *corev1.Pod) []string {
		if len(pod.Spec.ResourceClaims) == 0 {
			return nil
		}
		return ownerOfPod(pod).templateNames()
	})
	// podsWithClaimsByGroup finds pods that have claims by the namespace/name of their PodGroup.
	podsWithClaimsByGroup = podIndex("podsWithResourceClaimsByGroup", func(pod *corev1.Pod) []string {
		if name := groupOf(pod); name != "" && len(pod.Spec.ResourceClaims) > 0 {
			return []string{name}
		}
		return nil
	})
	// groupsByTemplate finds PodGroups by the namespace/name of each template that they name.
	groupsByTemplate = cache.NewIndex("podGroupsByResourceClaimTemplate", func(object any) ([]string, error) {
		group, is := object.(*schedulingv1alpha2.PodGroup)
		if !is {
			return nil, nil
		}
		return inNamespace(group.Namespace, ownerOfGroup(group).templateNames()), nil
	})
)

// podIndex finds pods by namespace and names.
func podIndex(name string, of func(*corev1.Pod) []string) cache.Index {
	return cache.NewIndex(name, func(object any) ([]string, error) {
		pod, is := object.(*corev1.Pod)
		if !is {
			return nil, nil
		}
		return inNamespace(pod.Namespace, of(pod)), nil
	})
}

// inNamespace returns the namespace/name of each of the names once.
func inNamespace(namespace string, names []string) []string {
	names = sets.New(names...).UnsortedList()
	for i := range names {
		names[i] = namespace + "/" + names[i]
	}
	return names
}

// groupOf returns the name of the PodGroup of a pod; "" if it has none.
func groupOf(pod *corev1.Pod) string {
	if group := pod.Spec.SchedulingGroup; group != nil && group.PodGroupName != nil {
		return *group.PodGroupName
	}
	return ""
}
