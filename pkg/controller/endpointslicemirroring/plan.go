package endpointslicemirroring

//lint:file-ignore SA1019 the old API is what this controller mirrors

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// leftOut returns why Endpoints are never mirrored, whatever their Service is; "" if
// nothing is in the way.
func leftOut(endpoints *corev1.Endpoints) string {
	if endpoints.Labels[discoveryv1.LabelSkipMirror] == "true" {
		return "the label " + discoveryv1.LabelSkipMirror + " says so"
	}
	if _, elects := endpoints.Annotations[resourcelock.LeaderElectionRecordAnnotationKey]; elects {
		return "they hold the record of an election"
	}
	return ""
}

// reason returns why there is nothing to mirror; "" if there is.
func (o observed) reason() string {
	switch {
	case o.endpoints == nil:
		return "there are no Endpoints"
	case leftOut(o.endpoints) != "":
		return leftOut(o.endpoints)
	case o.service == nil:
		return "there is no Service"
	case len(o.service.Spec.Selector) > 0:
		return "the Service has a selector"
	}
	return ""
}

// plan brings the slices of a name to the wanted state.
func plan(o observed, _ time.Time) act.Plan {
	why := o.reason()
	if why == "" {
		return o.mirror()
	}
	p := act.Plan{Why: "nothing is mirrored: " + why}
	var deletes []act.Step
	for _, slice := range o.slices {
		if slice.DeletionTimestamp == nil {
			deletes = append(deletes, act.Delete{Of: slice, Unchanged: true})
		}
	}
	if len(deletes) > 0 {
		p.Why = fmt.Sprintf("%d slices are deleted: %s", len(deletes), why)
		p.Stages = []act.Stage{act.EachInTurn(deletes...)}
	}
	p.Note = func(r act.Results) any { return turnOf(r, numbers{}, len(deletes) == 0) }
	return p
}

// mirror plans what the Endpoints call for: first the events, then creations,
// updates and deletions, up to the first that fails.
func (o observed) mirror() act.Plan {
	wanted, left := contents(canonical(o.endpoints.Subsets), o.most)
	w := o.match(wanted)
	n := numbers{slices: len(o.slices) + len(w.creates) - len(w.deletes), wanted: len(wanted)}
	for i := range wanted {
		n.endpoints += len(wanted[i].endpoints)
	}
	steps := slices.Concat(o.tell(left), w.creates, w.updates, w.deletes)
	p := act.Plan{
		Why: fmt.Sprintf("%d endpoints in %d slices mirror the Endpoints: %d to create, %d to update, %d to delete",
			n.endpoints, n.wanted, len(w.creates), len(w.updates), len(w.deletes)),
		Stages: act.Stages(steps...),
		Counts: func(r act.Results) []act.Count { return counts(r, w.changes, left) },
		Note:   func(r act.Results) any { return turnOf(r, n, false) },
	}
	return p
}

func (o observed) tell(left skipped) (steps []act.Step) {
	warn := func(reason, message string) {
		steps = append(steps, act.Event{On: o.endpoints, Type: corev1.EventTypeWarning, Reason: reason, Message: message})
	}
	if left.invalid > 0 {
		warn("InvalidIPAddress", fmt.Sprintf("Skipped %d invalid IP addresses when mirroring to EndpointSlices", left.invalid))
	}
	if left.tooMany > 0 {
		warn("TooManyAddressesToMirror", fmt.Sprintf("A max of %d addresses can be mirrored to EndpointSlices per Endpoints subset. %d addresses were skipped",
			o.most, left.tooMany+left.invalid))
	}
	return steps
}

// written are the steps that bring the slices to the wanted state.
type written struct {
	creates, updates, deletes []act.Step
	changes                   changes
}

// match finds a slice for each content. A slice that is for nothing any more takes the
// place of one that would be created, so that a change of ports is one write. One that is
// being deleted is kept up to date while its content is wanted, and left alone otherwise.
func (o observed) match(wanted []content) (w written) {
	there := map[slot][]*discoveryv1.EndpointSlice{}
	for _, slice := range o.inOrder() {
		there[slotOf(slice)] = append(there[slotOf(slice)], slice)
	}
	var lacking []content
	slots, ports := map[slot]bool{}, map[string]bool{}
	for _, c := range wanted {
		slots[c.slot], ports[c.slot.ports] = true, true
		has := there[c.slot]
		if len(has) == 0 {
			lacking = append(lacking, c)
			continue
		}
		there[c.slot] = has[1:]
		d := differ(has[0].Endpoints, c.endpoints)
		w.changes = w.changes.plus(d)
		if d.any() || !saysAll(has[0], o.endpoints) {
			w.updates = append(w.updates, o.update(has[0], c))
		}
	}
	spare := map[discoveryv1.AddressType][]*discoveryv1.EndpointSlice{}
	for _, slice := range o.inOrder() {
		if slice.DeletionTimestamp == nil && slices.Contains(there[slotOf(slice)], slice) {
			spare[slice.AddressType] = append(spare[slice.AddressType], slice)
			if of := slotOf(slice); !slots[of] && ports[of.ports] { // a family went, and its ports stay
				w.changes.removed += len(slice.Endpoints)
			}
		}
	}
	for _, c := range lacking {
		w.changes.added += len(c.endpoints)
		if of := spare[c.family]; len(of) > 0 {
			w.updates = append(w.updates, o.update(of[0], c))
			spare[c.family] = of[1:]
		} else if o.endpoints.DeletionTimestamp == nil {
			w.creates = append(w.creates, o.create(c))
		}
	}
	for _, family := range []discoveryv1.AddressType{discoveryv1.AddressTypeIPv4, discoveryv1.AddressTypeIPv6, discoveryv1.AddressTypeFQDN} {
		for _, slice := range spare[family] {
			w.deletes = append(w.deletes, act.Delete{Of: slice, Unchanged: true})
		}
	}
	return w
}

// inOrder returns the slices, those that stay before those that are being deleted, and
// of each the oldest first.
func (o observed) inOrder() []*discoveryv1.EndpointSlice {
	goes := func(s *discoveryv1.EndpointSlice) int {
		if s.DeletionTimestamp != nil {
			return 1
		}
		return 0
	}
	return slices.SortedFunc(slices.Values(o.slices), func(a, b *discoveryv1.EndpointSlice) int {
		return cmp.Or(cmp.Compare(goes(a), goes(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
}

func (o observed) update(cached *discoveryv1.EndpointSlice, c content) act.Step {
	slice := cached.DeepCopy()
	fill(slice, o.endpoints, c)
	return act.Update{Object: slice, Required: true}
}

func (o observed) create(c content) act.Step {
	return act.Create{Object: newSlice(o.endpoints, c), Owner: o.endpoints, Siblings: labels.SelectorFromSet(labelsOf(o.endpoints.Name))}
}
