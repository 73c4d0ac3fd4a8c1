package endpoints

//lint:file-ignore SA1019 the old API is what this controller keeps

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/conversion"

	"github.com/kube-kcm/kube-controller-manager/pkg/services"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	// LabelManagedBy says on an Endpoints object who writes it.
	LabelManagedBy = "endpoints.kubernetes.io/managed-by"
	// ManagedBy is the value of LabelManagedBy on the objects this controller writes.
	ManagedBy = "endpoint-controller"

	// truncatedValue is the value of the over-capacity annotation.
	truncatedValue = "truncated"
)

var errServiceThere = errors.New("the service is there, and the cache does not show it yet")

// observed is what a plan is made of.
type observed struct {
	// service and its current endpoints are nil if there are none.
	service *corev1.Service
	current *corev1.Endpoints
	pods    []*corev1.Pod
	// trigger is when what made the difference happened, zero if unknown.
	trigger time.Time
	// wait is how long the Service has to wait for its turn.
	wait  time.Duration
	began time.Time
}

// turn is what is noted of a reconcile.
type turn struct {
	began time.Time
	err   error
	// lost says that the answer to a creation was.
	lost bool
}

// plan brings the Endpoints of a Service to the wanted state.
func plan(o observed, _ time.Time) act.Plan {
	if o.wait > 0 {
		return act.Plan{Why: fmt.Sprintf("waiting %s for more addresses, to write them together", o.wait.Round(time.Millisecond)), RequeueAfter: o.wait}
	}
	p := o.decide()
	p.Note = func(r act.Results) any {
		return turn{o.began, r.Err(), slices.ContainsFunc(r, func(one act.Result) bool { return one.Became == act.Uncertain && o.current == nil })}
	}
	return p
}

func (o observed) decide() act.Plan {
	switch {
	case o.service == nil && o.current == nil:
		return act.Plan{Why: "neither service nor endpoints exist"}
	case o.service == nil:
		return act.Plan{Why: "the service is gone", Stages: act.Stages(o.looksGone(), act.Delete{Of: o.current})}
	case o.service.Spec.Type == corev1.ServiceTypeExternalName:
		return act.Plan{Why: "an external name has no endpoints"}
	case !services.Selects(o.service):
		return act.Plan{Why: "without a selector its endpoints are written by others"}
	}
	return planFor(o.service, o.pods, o.current, o.trigger)
}

// looksGone looks live for the Service: two caches are not equally far, and nobody restores
// endpoints that were written by hand.
func (o observed) looksGone() act.Step {
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: o.current.Namespace, Name: o.current.Name}}
	return act.Check{Of: service, Is: func(live metav1.Object) error {
		if live != nil {
			return errServiceThere
		}
		return nil
	}}
}

// planFor decides about the Endpoints of a Service that selects pods. Current is nil
// if there are none yet.
func planFor(service *corev1.Service, pods []*corev1.Pod, current *corev1.Endpoints, trigger time.Time) act.Plan {
	subsets, overCapacity := truncated(subsetsOf(service, pods), maxAddresses)
	labels := labelsFor(service)
	ready, notReady := count(subsets)
	numbers := fmt.Sprintf(": %d addresses are ready, %d are not", ready, notReady)
	var p act.Plan
	switch {
	case current == nil:
		p.Why = "the service has no endpoints object" + numbers
	case !sameSubsets(current.Subsets, subsets):
		p.Why = "the addresses or ports differ" + numbers
	case !sameLabels(current.Labels, labels):
		p.Why = "the labels differ" + numbers
	case !saysCapacity(current, overCapacity):
		p.Why = "the over-capacity annotation differs" + numbers
	default:
		return act.Plan{Why: "the endpoints are up to date" + numbers}
	}
	wanted := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: service.Namespace, Name: service.Name}}
	if current != nil {
		wanted = current.DeepCopy()
	}
	wanted.Subsets = subsets
	wanted.Labels = labels
	wanted.Annotations = annotationsFor(wanted.Annotations, trigger, overCapacity)
	name := service.Namespace + "/" + service.Name
	if current == nil {
		p.Stages = act.Stages(act.Create{Object: wanted, Events: act.Events{On: wanted,
			FailedReason: "FailedToCreateEndpoint", Failed: "Failed to create endpoint for service " + name + ": %v"}})
		return p
	}
	p.Stages = act.Stages(act.Update{Object: wanted, Required: true, Events: act.Events{On: wanted,
		FailedReason: "FailedToUpdateEndpoint", Failed: "Failed to update endpoint " + name + ": %v"}})
	return p
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

// saysCapacity reports whether the over-capacity annotation is as it should be:
// absent unless addresses were left out.
func saysCapacity(endpoints *corev1.Endpoints, overCapacity bool) bool {
	value, set := endpoints.Annotations[corev1.EndpointsOverCapacity]
	return set == overCapacity && (!set || value == truncatedValue)
}
