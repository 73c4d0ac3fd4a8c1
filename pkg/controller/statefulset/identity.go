package statefulset

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

var (
	kind    = appsv1.SchemeGroupVersion.WithKind("StatefulSet")
	podKind = corev1.SchemeGroupVersion.WithKind("Pod")
)

// podName is the name of the pod with this ordinal.
func podName(set string, ordinal int) string { return set + "-" + strconv.Itoa(ordinal) }

// parent takes the name of a pod or of a claim apart. Only the spelling that
// podName gives has an ordinal: web-01 is no pod of web.
func parent(name string) (of string, ordinal int, ok bool) {
	dash := strings.LastIndexByte(name, '-')
	if dash < 1 {
		return "", 0, false
	}
	n, err := strconv.ParseInt(name[dash+1:], 10, 32)
	if err != nil || podName(name[:dash], int(n)) != name {
		return "", 0, false
	}
	return name[:dash], int(n), true
}

// ordinalIn is the ordinal of a pod of this set.
func ordinalIn(set *appsv1.StatefulSet, pod *corev1.Pod) (int, bool) {
	of, ordinal, ok := parent(pod.Name)
	return ordinal, ok && of == set.Name && pod.Namespace == set.Namespace
}

// namedFor reports whether the pod's name is that of the set and a number, however it is
// spelled. web-01 is none of the pods of web, but no stranger that is let go either.
func namedFor(set *appsv1.StatefulSet, pod *corev1.Pod) bool {
	number, ok := strings.CutPrefix(pod.Name, set.Name+"-")
	return ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// firstOrdinal is that of the set's first pod.
func firstOrdinal(set *appsv1.StatefulSet) int {
	if set.Spec.Ordinals == nil {
		return 0
	}
	return int(set.Spec.Ordinals.Start)
}

func wanted(set *appsv1.StatefulSet) int { return int(ptr.Deref(set.Spec.Replicas, 1)) } // the API's default

// inRange reports whether the set asks for a pod with this ordinal.
func inRange(set *appsv1.StatefulSet, ordinal int) bool {
	return ordinal >= firstOrdinal(set) && ordinal < firstOrdinal(set)+wanted(set)
}

// identity are the labels by which a pod says who it is.
func identity(set *appsv1.StatefulSet, ordinal int) map[string]string {
	return map[string]string{
		appsv1.StatefulSetPodNameLabel: podName(set.Name, ordinal),
		appsv1.PodIndexLabel:           strconv.Itoa(ordinal),
	}
}

// revisionOf is the name of the revision that the pod was made from.
func revisionOf(pod *corev1.Pod) string { return pod.Labels[appsv1.ControllerRevisionHashLabelKey] }

// newPod is the pod of this ordinal as the revision wants it.
func newPod(set *appsv1.StatefulSet, r revision, ordinal int) *corev1.Pod {
	pod := pods.FromTemplate(r.template, set, metav1.NewControllerRef(set, kind))
	pod.Name = podName(set.Name, ordinal)
	maps.Copy(pod.Labels, identity(set, ordinal))
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = r.name
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, set.Spec.ServiceName
	claims := claimVolumes(set, ordinal)
	pod.Spec.Volumes = append(claims, slices.DeleteFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return slices.ContainsFunc(claims, func(claim corev1.Volume) bool { return claim.Name == v.Name })
	})...)
	return pod
}

// claimName is the name of the claim that the pod of this ordinal has by the template.
func claimName(set *appsv1.StatefulSet, template *corev1.PersistentVolumeClaim, ordinal int) string {
	return template.Name + "-" + podName(set.Name, ordinal)
}

// claimTemplates are the set's templates of claims: of those with one name the last, as in
// the original.
func claimTemplates(set *appsv1.StatefulSet) []*corev1.PersistentVolumeClaim {
	all := make([]*corev1.PersistentVolumeClaim, 0, len(set.Spec.VolumeClaimTemplates))
	for i := range set.Spec.VolumeClaimTemplates {
		template := &set.Spec.VolumeClaimTemplates[i]
		if at := slices.IndexFunc(all, func(t *corev1.PersistentVolumeClaim) bool { return t.Name == template.Name }); at >= 0 {
			all[at] = template
		} else {
			all = append(all, template)
		}
	}
	return all
}

// claimVolumes are the volumes of the pod that are claims of its own.
func claimVolumes(set *appsv1.StatefulSet, ordinal int) []corev1.Volume {
	volumes := make([]corev1.Volume, 0, len(set.Spec.VolumeClaimTemplates))
	for _, template := range claimTemplates(set) {
		volumes = append(volumes, corev1.Volume{Name: template.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(set, template, ordinal)}}})
	}
	return volumes
}

// newClaim is the claim of the pod of this ordinal by the template. It carries
// the labels of the selector, so that users find it, and its owner from the start.
func newClaim(set *appsv1.StatefulSet, template *corev1.PersistentVolumeClaim, ordinal int) *corev1.PersistentVolumeClaim {
	claim := template.DeepCopy()
	claim.Name, claim.Namespace = claimName(set, template, ordinal), set.Namespace
	claim.Labels = labels.Merge(claim.Labels, set.Spec.Selector.MatchLabels)
	if owners, ok := owned(claim, set, nil); !ok {
		claim.OwnerReferences = owners
	}
	return claim
}

// missingLabels is the identity, if the pod does not carry its name. A lost index comes
// back only with it.
func missingLabels(set *appsv1.StatefulSet, pod *corev1.Pod, ordinal int) map[string]string {
	if pod.Labels[appsv1.StatefulSetPodNameLabel] == podName(set.Name, ordinal) {
		return nil
	}
	return identity(set, ordinal)
}

// missingVolumes are the claims that the pod does not mount under their names.
func missingVolumes(set *appsv1.StatefulSet, pod *corev1.Pod, ordinal int) []corev1.Volume {
	var missing []corev1.Volume
	for _, want := range claimVolumes(set, ordinal) {
		if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
			return v.Name == want.Name && v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == want.PersistentVolumeClaim.ClaimName
		}) {
			missing = append(missing, want)
		}
	}
	return missing
}
