package resourceclaim

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// podClaimName is the annotation that says which claim of its owner a claim was made for.
const podClaimName = "resource.kubernetes.io/pod-claim-name"

var (
	podKind   = corev1.SchemeGroupVersion.WithKind("Pod")
	groupKind = schedulingv1alpha2.SchemeGroupVersion.WithKind("PodGroup")
)

// want is a claim that the spec of an owner asks for: by its name, or by a template.
type want struct {
	name            string
	claim, template *string
}

// entry is what the status of an owner says of a claim. One without a claim needs none.
type entry struct {
	name  string
	claim *string
}

// owner is what claims are made for: a pod, or a PodGroup.
type owner struct {
	client.Object
	kind     schema.GroupVersionKind
	wants    []want
	recorded []entry
	// placed: it is a pod that has its node. Nobody would allocate another claim for it.
	placed bool
}

func ownerOfPod(pod *corev1.Pod) owner {
	o := owner{Object: pod, kind: podKind, placed: pod.Spec.NodeName != ""}
	for _, c := range pod.Spec.ResourceClaims {
		o.wants = append(o.wants, want{c.Name, c.ResourceClaimName, c.ResourceClaimTemplateName})
	}
	for _, s := range pod.Status.ResourceClaimStatuses {
		o.recorded = append(o.recorded, entry{s.Name, s.ResourceClaimName})
	}
	return o
}

func ownerOfGroup(group *schedulingv1alpha2.PodGroup) owner {
	o := owner{Object: group, kind: groupKind}
	for _, c := range group.Spec.ResourceClaims {
		o.wants = append(o.wants, want{c.Name, c.ResourceClaimName, c.ResourceClaimTemplateName})
	}
	for _, s := range group.Status.ResourceClaimStatuses {
		o.recorded = append(o.recorded, entry{s.Name, s.ResourceClaimName})
	}
	return o
}

// entryOf returns what is recorded of a claim, if anything is.
func (o owner) entryOf(name string) (entry, bool) {
	i := slices.IndexFunc(o.recorded, func(e entry) bool { return e.name == name })
	if i < 0 {
		return entry{}, false
	}
	return o.recorded[i], true
}

// claimNames returns the names of the claims that the spec names or the status records.
func (o owner) claimNames() []string {
	var names []string
	for _, w := range o.wants {
		if w.claim != nil {
			names = append(names, *w.claim)
		}
	}
	for _, e := range o.recorded {
		if e.claim != nil {
			names = append(names, *e.claim)
		}
	}
	return names
}

// templateNames returns the names of the templates that the spec names.
func (o owner) templateNames() []string {
	var names []string
	for _, w := range o.wants {
		if w.template != nil {
			names = append(names, *w.template)
		}
	}
	return names
}

// allClaimNames are also those that the scheduler made for extended resources.
func allClaimNames(pod *corev1.Pod) []string {
	names := ownerOfPod(pod).claimNames()
	if extended := pod.Status.ExtendedResourceClaimStatus; extended != nil && extended.ResourceClaimName != "" {
		names = append(names, extended.ResourceClaimName)
	}
	return names
}

// done reports whether a pod uses no claim any more: it has ended for good, or will never run.
func done(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed ||
		pod.DeletionTimestamp != nil && pod.Spec.NodeName == ""
}

// sameEntries reports whether two statuses say the same, in any order.
func sameEntries(a, b []entry) bool { return len(a) == len(b) && allEntries(a, b) }

// allEntries reports whether each of these entries is among those.
func allEntries(these, those []entry) bool {
	return !slices.ContainsFunc(these, func(e entry) bool {
		return !slices.ContainsFunc(those, func(f entry) bool { return e.name == f.name && ptr.Equal(e.claim, f.claim) })
	})
}

// generatedFor returns the claim of an owner that was made for one of its spec: the first of
// those that nobody deletes, then the oldest, then the first by name. A webhook may have
// taken the annotation off; what the name begins with stays. Long names may begin alike: a
// claim that an entry has is not the one of another.
func (o owner) generatedFor(name string, owned []*resourceapi.ResourceClaim, entries []entry) *resourceapi.ResourceClaim {
	var best *resourceapi.ResourceClaim
	for _, claim := range owned {
		ofAnother := func(e entry) bool { return e.name != name && ptr.Equal(e.claim, &claim.Name) }
		of, said := claim.Annotations[podClaimName]
		_, extended := claim.Annotations[resourceapi.ExtendedResourceClaimAnnotation]
		its := of == name || !said && !extended && claim.GenerateName == generateName(o.GetName(), name) &&
			!slices.ContainsFunc(o.recorded, ofAnother) && !slices.ContainsFunc(entries, ofAnother)
		if its && (best == nil || byAge(claim, best) < 0) {
			best = claim
		}
	}
	return best
}

func byAge(a, b *resourceapi.ResourceClaim) int {
	return cmp.Or(pods.FalseFirst(a.DeletionTimestamp != nil, b.DeletionTimestamp != nil), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

// controls reports whether a claim is one of the owner.
func (o owner) controls(claim *resourceapi.ResourceClaim) bool {
	return claim != nil && metav1.IsControlledBy(claim, o.Object)
}

// keeps reports whether a claim that is recorded stays so: one of the owner, and of a pod that
// has its node also one that nobody controls any more.
func (o owner) keeps(claim metav1.Object) bool {
	return metav1.IsControlledBy(claim, o.Object) || o.placed && metav1.GetControllerOfNoCopy(claim) == nil
}
