package resourceclaim

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// pod is one that wants claims by these templates; each claim has the name of its template.
func pod(templates ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "web", UID: "web-uid", ResourceVersion: "1"}}
	for _, t := range templates {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: t, ResourceClaimTemplateName: ptr.To(t)})
	}
	return p
}

func naming(p *corev1.Pod, claims ...string) *corev1.Pod {
	for _, c := range claims {
		p.Spec.ResourceClaims = append(p.Spec.ResourceClaims, corev1.PodResourceClaim{Name: "by-" + c, ResourceClaimName: ptr.To(c)})
	}
	return p
}

// recording has these entries, name and claim in turn. An empty claim needs none.
func recording(p *corev1.Pod, entries ...string) *corev1.Pod {
	for i := 0; i < len(entries); i += 2 {
		s := corev1.PodResourceClaimStatus{Name: entries[i]}
		if entries[i+1] != "" {
			s.ResourceClaimName = &entries[i+1]
		}
		p.Status.ResourceClaimStatuses = append(p.Status.ResourceClaimStatuses, s)
	}
	return p
}

func extended(p *corev1.Pod, claim string) *corev1.Pod {
	p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: claim}
	return p
}

func on(p *corev1.Pod, node string) *corev1.Pod {
	p.Spec.NodeName = node
	return p
}

func phase(p *corev1.Pod, phase corev1.PodPhase) *corev1.Pod {
	p.Status.Phase = phase
	return p
}

func leaving[T metav1.Object](o T) T {
	o.SetDeletionTimestamp(&metav1.Time{Time: noon})
	return o
}

func uid[T metav1.Object](o T, uid types.UID) T {
	o.SetUID(uid)
	return o
}

func version[T metav1.Object](o T, version string) T {
	o.SetResourceVersion(version)
	return o
}

func claim(name string) *resourceapi.ResourceClaim {
	return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name, UID: types.UID(name + "-uid"), ResourceVersion: "1"}}
}

// made is a claim that was made for a claim of the pod of that UID.
func made(name, of string, owner types.UID) *resourceapi.ResourceClaim {
	c := owned(claim(name), owner)
	c.Annotations = map[string]string{podClaimName: of}
	return c
}

// generated is a claim of the pod without an annotation, whose name was generated.
func generated(name, begins string) *resourceapi.ResourceClaim {
	c := owned(claim(name), "web-uid")
	c.GenerateName = begins
	return c
}

// forExtended is a claim that the scheduler made for extended resources.
func forExtended(c *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	c.Annotations = map[string]string{resourceapi.ExtendedResourceClaimAnnotation: "true"}
	return c
}

func owned(c *resourceapi.ResourceClaim, owner types.UID) *resourceapi.ResourceClaim {
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Pod", Name: "web", UID: owner, Controller: ptr.To(true)}}
	return c
}

// allocated has an allocation, as the scheduler writes it: with the finalizer.
func allocated(c *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	c.Finalizers = append(c.Finalizers, resourceapi.Finalizer)
	c.Status.Allocation = &resourceapi.AllocationResult{}
	return c
}

func bare(c *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	c.Finalizers = nil
	return c
}

func reserved(c *resourceapi.ResourceClaim, refs ...reference) *resourceapi.ResourceClaim {
	c.Status.ReservedFor = append(c.Status.ReservedFor, refs...)
	return c
}

func podRef(name string, uid types.UID) reference {
	return reference{Resource: "pods", Name: name, UID: uid}
}

var (
	webRef   = podRef("web", "web-uid")
	foreign  = reference{APIGroup: "example.com", Resource: "things", Name: "web", UID: "thing-uid"}
	gangRef  = reference{APIGroup: "scheduling.k8s.io", Resource: "podgroups", Name: "gang", UID: "gang-uid"}
	oneGroup = "gang"
)

func template(name string) *resourceapi.ResourceClaimTemplate {
	t := &resourceapi.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{
		Namespace: "team", Name: name, Labels: map[string]string{"of": "the template"}, Annotations: map[string]string{"of": "the template"}}}
	t.Spec.Labels, t.Spec.Annotations = map[string]string{"tier": name}, map[string]string{"why": name, podClaimName: "wrong"}
	t.Spec.Spec.Devices.Requests = []resourceapi.DeviceRequest{{Name: "one", Exactly: &resourceapi.ExactDeviceRequest{DeviceClassName: name}}}
	return t
}

func prioritized(t *resourceapi.ResourceClaimTemplate) *resourceapi.ResourceClaimTemplate {
	t.Spec.Spec.Devices.Requests[0] = resourceapi.DeviceRequest{Name: "one", FirstAvailable: []resourceapi.DeviceSubRequest{{Name: "best"}}}
	return t
}

func member(p *corev1.Pod) *corev1.Pod {
	p.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &oneGroup}
	return p
}

// gang is a PodGroup that wants claims by these templates.
func gang(templates ...string) *schedulingv1alpha2.PodGroup {
	g := &schedulingv1alpha2.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "gang", UID: "gang-uid"}}
	for _, t := range templates {
		g.Spec.ResourceClaims = append(g.Spec.ResourceClaims, schedulingv1alpha2.PodGroupResourceClaim{Name: t, ResourceClaimTemplateName: ptr.To(t)})
	}
	return g
}

func recordingGroup(g *schedulingv1alpha2.PodGroup, entries ...string) *schedulingv1alpha2.PodGroup {
	for i := 0; i < len(entries); i += 2 {
		g.Status.ResourceClaimStatuses = append(g.Status.ResourceClaimStatuses,
			schedulingv1alpha2.PodGroupResourceClaimStatus{Name: entries[i], ResourceClaimName: &entries[i+1]})
	}
	return g
}

func ofGang(c *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "scheduling.k8s.io/v1alpha2", Kind: "PodGroup", Name: "gang", UID: "gang-uid", Controller: ptr.To(true)}}
	return c
}
