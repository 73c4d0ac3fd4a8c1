package resourceclaim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	schedulingapply "k8s.io/client-go/applyconfigurations/scheduling/v1alpha2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	// fieldManager owns the entries in statuses.
	fieldManager = "ResourceClaimController"
	// failedCreation is the reason of all events.
	failedCreation = "FailedResourceClaimCreation"
)

// errPrioritizedList refuses a template where the gate DRAPrioritizedList is off.
var errPrioritizedList = errors.New("template includes a prioritized list of subrequests, but the feature is disabled")

// holder is an owner and what there is of its claims.
type holder struct {
	owner
	// named are the cached claims of the names in its spec and status.
	named map[string]*resourceapi.ResourceClaim
	// owned are the cached claims that it controls.
	owned []*resourceapi.ResourceClaim
	// live are the recorded names that the cache lacks and a live read has shown to be its own.
	live map[string]bool
	// templates are the cached ones that its spec names.
	templates map[string]*resourceapi.ResourceClaimTemplate
	// shared are the claims that it has from its PodGroup, by their names in the spec; one
	// without a claim is to come.
	shared map[string]*string
	// listsAllowed: templates may have prioritized lists.
	listsAllowed bool
}

// known returns the entry of a claim that is there, or that is needed by nobody. Before it
// come these entries.
func (h holder) known(w want, before []entry) (entry, bool) {
	recorded, is := h.entryOf(w.name)
	switch {
	case is && recorded.claim == nil:
		return recorded, true
	case is && h.named[*recorded.claim] != nil && h.keeps(h.named[*recorded.claim]):
		return recorded, true
	}
	if claim := h.generatedFor(w.name, h.owned, before); claim != nil {
		return entry{w.name, &claim.Name}, true
	}
	return recorded, is && h.live[*recorded.claim]
}

// complete makes the claims that are missing, in the order of the spec and up to the first
// that fails, records all of them, and goes on with the rest.
func (h holder) complete(then func() act.Plan) act.Plan {
	rest := func() act.Plan {
		p := then()
		if slices.Contains(slices.Collect(maps.Values(h.live)), true) { // it may go before the cache shows it
			p.RequeueAfter = act.Soonest(p.RequeueAfter, lookAgain)
		}
		return p
	}
	var steps []act.Step
	var made []string
	entries := make([]entry, 0, len(h.wants))
	for _, w := range h.wants {
		if w.template == nil {
			continue
		}
		if claim, is := h.shared[w.name]; is {
			if claim != nil {
				entries = append(entries, entry{w.name, claim})
			}
			continue
		}
		e, is := h.known(w, entries)
		if !is {
			step, err := h.creation(w)
			if err != nil {
				steps = append(steps, h.tell(w, err), act.WaitFor{Of: h.Object, Err: err})
				return act.Plan{Why: fmt.Sprintf("claim %s cannot be made: %v", w.name, err), Stages: act.Stages(steps...), Counts: counts}
			}
			steps, made = append(steps, step), append(made, w.name)
		}
		entries = append(entries, entry{name: w.name, claim: e.claim})
	}
	if len(steps) == 0 {
		return h.record(entries, "all its claims are there", rest)
	}
	return act.Plan{
		Why: fmt.Sprintf("claims that are missing: %q", made), Stages: act.Stages(steps...), Counts: counts,
		Then: func(results act.Results) act.Plan {
			if name, err := h.strange(made, results); err != nil {
				return act.Plan{Why: "a webhook changes its claims", Stages: act.Stages(h.tell(want{name: name}, err)), Terminal: err}
			}
			return h.record(named(entries, made, results), "its claims have been made", rest)
		},
	}
}

// strange returns the first of the names, all of whose claims were created, whose claim does
// not have the owner, and an error that says so. Such a claim is not recorded: it would be
// created again with each change of the status.
func (h holder) strange(names []string, results act.Results) (name string, err error) {
	for i, r := range act.Succeeded[act.Create](results) {
		if !metav1.IsControlledBy(r.Object, h.Object) {
			return names[i], fmt.Errorf("ResourceClaim %s was created without its owner", r.Object.GetName())
		}
	}
	return "", nil
}

// named fills in the names that the API server has given to the claims that were made, in
// that order. It does not go by their annotations: a webhook may have changed them.
func named(entries []entry, made []string, results act.Results) []entry {
	names := map[string]*string{}
	for _, r := range results {
		if _, is := r.Step.(act.Create); !is {
			continue
		}
		if r.Became == act.Done {
			names[made[0]] = new(r.Object.GetName())
		}
		made = made[1:]
	}
	filled := make([]entry, 0, len(entries))
	for _, e := range entries {
		if claim := names[e.name]; claim != nil {
			e.claim = claim
		}
		filled = append(filled, e)
	}
	return filled
}

// record writes the entries, all of them: those that are left out of what is applied
// would be taken out of the status.
func (h holder) record(entries []entry, why string, rest func() act.Plan) act.Plan {
	next := func(r act.Results) act.Plan {
		if !h.shows(r[len(r)-1].Object, entries) {
			err := errors.New("the status was accepted, but does not show its claims: a webhook may have removed them")
			return act.Plan{Why: err.Error(), Err: err} // nothing would wake it again
		}
		return rest()
	}
	if sameEntries(entries, h.recorded) || len(entries) == 0 {
		p := rest()
		p.Why = strings.Join([]string{why, p.Why}, ", ")
		return p
	}
	return act.Plan{
		Why: fmt.Sprintf("%s: %d of them in its status", why, len(entries)), Then: next,
		Stages: act.Stages(act.Apply{
			Of: h.Object, Configuration: h.status(entries), Manager: fieldManager, Force: true, Subresource: "status",
		}),
	}
}

// shows reports whether an answer has the entries; one without a status has, too.
func (h holder) shows(answer client.Object, entries []entry) bool {
	switch answer := answer.(type) {
	case *corev1.Pod:
		return allEntries(entries, ownerOfPod(answer).recorded)
	case *schedulingv1alpha2.PodGroup:
		return allEntries(entries, ownerOfGroup(answer).recorded)
	}
	return true
}

// status is what is applied. The UID keeps the status of another owner of the name clean.
func (h holder) status(entries []entry) runtime.ApplyConfiguration {
	name, namespace, uid := h.GetName(), h.GetNamespace(), h.GetUID()
	if h.kind == groupKind {
		status := schedulingapply.PodGroupStatus()
		for _, e := range entries {
			one := schedulingapply.PodGroupResourceClaimStatus().WithName(e.name)
			one.ResourceClaimName = e.claim
			status.WithResourceClaimStatuses(one)
		}
		return schedulingapply.PodGroup(name, namespace).WithUID(uid).WithStatus(status)
	}
	status := corev1apply.PodStatus()
	for _, e := range entries {
		one := corev1apply.PodResourceClaimStatus().WithName(e.name)
		one.ResourceClaimName = e.claim
		status.WithResourceClaimStatuses(one)
	}
	return corev1apply.Pod(name, namespace).WithUID(uid).WithStatus(status)
}

// creation makes a claim from its template.
func (h holder) creation(w want) (act.Step, error) {
	template := h.templates[*w.template]
	if template == nil {
		return nil, fmt.Errorf("resource claim template %q: %w", *w.template,
			apierrors.NewNotFound(resourceapi.Resource("resourceclaimtemplate"), *w.template))
	}
	if !h.listsAllowed && prioritizes(&template.Spec.Spec) {
		return nil, errPrioritizedList
	}
	annotations := map[string]string{}
	maps.Copy(annotations, template.Spec.Annotations)
	annotations[podClaimName] = w.name
	yes := true
	claim := &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: h.GetNamespace(), GenerateName: generateName(h.GetName(), w.name),
			Labels: maps.Clone(template.Spec.Labels), Annotations: annotations,
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: h.kind.GroupVersion().String(), Kind: h.kind.Kind, Name: h.GetName(), UID: h.GetUID(), Controller: &yes,
			}},
		},
		Spec: *template.Spec.Spec.DeepCopy(),
	}
	return act.Create{Object: claim, Owner: h.Object, Siblings: labels.Everything(), Events: act.Events{
		On: h.Object, FailedReason: failedCreation, Failed: h.prefix(w) + "create ResourceClaim : %v",
	}}, nil
}

func (h holder) prefix(w want) string { return h.kind.Kind + "ResourceClaim " + w.name + ": " }

func (h holder) tell(w want, err error) act.Step {
	return act.Event{On: h.Object, Type: corev1.EventTypeWarning, Reason: failedCreation, Message: h.prefix(w) + err.Error()}
}

func prioritizes(spec *resourceapi.ResourceClaimSpec) bool {
	for i := range spec.Devices.Requests {
		if len(spec.Devices.Requests[i].FirstAvailable) > 0 {
			return true
		}
	}
	return false
}
