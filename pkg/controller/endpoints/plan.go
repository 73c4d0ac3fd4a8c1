package endpoints

//lint:file-ignore SA1019 the old API is what this controller keeps

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"
)

const (
	// LabelManagedBy says on an Endpoints object who writes it.
	LabelManagedBy = "endpoints.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy on the objects this controller writes.
	ManagedBy = "endpoint-controller"

	// truncatedValue is the value of the over-capacity annotation.
	truncatedValue = "truncated"
)

// action is what is to be done with the Endpoints of a Service.
type action string

const (
	nothing action = "nothing"
	create  action = "create"
	update  action = "update"
	remove  action = "delete"
)

// plan is what to do about one Service, and why.
type plan struct {
	Action   action `json:"action"`
	Why      string `json:"why"`
	Ready    int    `json:"ready,omitempty"`
	NotReady int    `json:"notReady,omitempty"`
	// want is the whole object to write, or the one to delete; not shown, because it is large.
	want *corev1.Endpoints
}

// withoutWant is the plan as it is kept for the debug endpoint.
func (p plan) withoutWant() plan {
	p.want = nil
	return p
}

// planFor decides about the Endpoints of a Service that exists. Current is nil
// if there are none yet; trigger is when what made the difference happened, zero
// if unknown.
func planFor(service *corev1.Service, pods []*corev1.Pod, current *corev1.Endpoints, trigger time.Time) plan {
	subsets, overCapacity := truncated(subsetsOf(service, pods), maxAddresses)
	p := plan{Action: nothing, Why: "the endpoints are as they should be"}
	p.Ready, p.NotReady = count(subsets)
	labels := labelsFor(service)
	switch {
	case current == nil:
		p.Action, p.Why = create, "the service has no endpoints object"
		current = &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name}}
	case !sameSubsets(current.Subsets, subsets):
		p.Action, p.Why = update, "the addresses or ports differ"
	case !sameLabels(current.Labels, labels):
		p.Action, p.Why = update, "the labels differ"
	case !saysCapacity(current, overCapacity):
		p.Action, p.Why = update, "the over-capacity annotation differs"
	default:
		return p
	}
	p.want = current.DeepCopy()
	p.want.Subsets = subsets
	p.want.Labels = labels
	p.want.Annotations = annotationsFor(p.want.Annotations, trigger, overCapacity)
	return p
}

// planWithout decides about the Endpoints of a Service that is gone.
func planWithout(current *corev1.Endpoints) plan {
	if current == nil {
		return plan{Action: nothing, Why: "neither service nor endpoints exist"}
	}
	return plan{Action: remove, Why: "the service is gone", want: current}
}

// equality compares endpoints as the API means them; a pod's resource version
// in a reference is not worth a write.
var equality = conversion.EqualitiesOrDie(func(a, b corev1.ObjectReference) bool {
	a.ResourceVersion, b.ResourceVersion = "", ""
	return a == b
})

// sameSubsets reports whether two lists of subsets offer the same addresses on the
// same ports, however they are ordered and divided.
func sameSubsets(a, b []corev1.EndpointSubset) bool {
	return equality.DeepEqual(a, b) || equality.DeepEqual(repacked(a), repacked(b))
}

// sameLabels compares labels as the original does: that Endpoints are headless is
// written with the next change, and no reason for one.
func sameLabels(a, b map[string]string) bool {
	return maps.Equal(withoutHeadless(a), withoutHeadless(b))
}

func withoutHeadless(labels map[string]string) map[string]string {
	if _, set := labels[corev1.IsHeadlessService]; !set {
		return labels
	}
	labels = maps.Clone(labels)
	delete(labels, corev1.IsHeadlessService)
	return labels
}

// labelsFor are the Service's labels, who manages the object, and whether the Service is headless.
func labelsFor(service *corev1.Service) map[string]string {
	labels := make(map[string]string, len(service.Labels)+2)
	maps.Copy(labels, service.Labels)
	delete(labels, corev1.IsHeadlessService)
	if !hasClusterIP(service) {
		labels[corev1.IsHeadlessService] = ""
	}
	labels[LabelManagedBy] = ManagedBy
	return labels
}

// annotationsFor sets the annotations this controller writes and keeps the rest.
func annotationsFor(annotations map[string]string, trigger time.Time, overCapacity bool) map[string]string {
	if annotations == nil {
		annotations = map[string]string{}
	}
	delete(annotations, corev1.EndpointsLastChangeTriggerTime)
	if !trigger.IsZero() {
		annotations[corev1.EndpointsLastChangeTriggerTime] = trigger.UTC().Format(time.RFC3339Nano)
	}
	delete(annotations, corev1.EndpointsOverCapacity)
	if overCapacity {
		annotations[corev1.EndpointsOverCapacity] = truncatedValue
	}
	return annotations
}

// saysCapacity tells whether the over-capacity annotation is as it should be:
// absent unless addresses were left out.
func saysCapacity(endpoints *corev1.Endpoints, overCapacity bool) bool {
	value, set := endpoints.Annotations[corev1.EndpointsOverCapacity]
	return set == overCapacity && (!set || value == truncatedValue)
}
