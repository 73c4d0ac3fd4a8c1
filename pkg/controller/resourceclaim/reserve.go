package resourceclaim

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/dynamic-resource-allocation/resourceclaim"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// observedPod is a pod with its claims.
type observedPod struct {
	holder
	pod *corev1.Pod
	// group is the PodGroup of the pod, where the gate for claims of PodGroups is on.
	group *schedulingv1alpha2.PodGroup
	// groups: the gate is on.
	groups bool
	// groupMissing: the pod names a PodGroup that the cache lacks.
	groupMissing error
}

func (o observedPod) plan() act.Plan {
	switch {
	case o.pod.DeletionTimestamp != nil:
		return act.Plan{Why: "the pod is being deleted"}
	case done(o.pod):
		return act.Plan{Why: "the pod has ended"}
	case o.groupMissing != nil:
		return act.Plan{Why: o.groupMissing.Error(), Err: o.groupMissing}
	}
	return o.complete(o.reserve)
}

// reserve puts a pod that has its node into the consumers of its claims, in the order of the
// spec and up to the first that is missing: the scheduler, which does so for all others, does
// not see it.
func (o observedPod) reserve() act.Plan {
	if o.pod.Spec.NodeName == "" {
		return act.Plan{Why: "the scheduler reserves them"}
	}
	var steps []act.Step
	var names []string
	for i := range o.pod.Spec.ResourceClaims {
		c := &o.pod.Spec.ResourceClaims[i]
		claim, needed := o.claimFor(c)
		if needed && claim == nil {
			break // the pod cannot begin without it, and others may use the rest until then
		}
		if !needed || slices.Contains(names, claim.Name) || claim.Status.Allocation == nil || claim.DeletionTimestamp != nil ||
			resourceclaim.IsReservedForPod(o.pod, claim, o.groups) {
			continue
		}
		consumer, err := resourceclaim.BindTo(o.pod, o.group, c)
		if err != nil {
			return act.Plan{Why: "a claim cannot be reserved", Err: err}
		}
		names = append(names, claim.Name)
		steps = append(steps, act.Status{Of: claim, Set: func(o client.Object) {
			status := &o.(*resourceapi.ResourceClaim).Status
			status.ReservedFor = append(status.ReservedFor, consumer)
		}})
	}
	if len(steps) == 0 {
		return act.Plan{Why: "all allocated claims before the first missing one are reserved"}
	}
	return act.Plan{Why: fmt.Sprintf("it has its node already, and its claims %q are not reserved", names), Stages: []act.Stage{act.EachInTurn(steps...)}}
}

// claimFor returns the cached claim of the pod for one of its spec; nil if there is none yet,
// or the one that is recorded is of another. One that is recorded without a claim is not needed.
func (o observedPod) claimFor(c *corev1.PodResourceClaim) (claim *resourceapi.ResourceClaim, needed bool) {
	if c.ResourceClaimName != nil {
		return o.named[*c.ResourceClaimName], true
	}
	if shared, is := o.shared[c.Name]; is {
		return o.named[ptr.Deref(shared, "")], true
	}
	e, is := o.entryOf(c.Name)
	if is && e.claim == nil {
		return nil, false
	}
	if claim := o.named[ptr.Deref(e.claim, "")]; is && o.controls(claim) {
		return claim, true
	}
	return nil, true
}

// observedGroup is a PodGroup with its claims.
type observedGroup struct{ holder }

func (o observedGroup) plan() act.Plan {
	if o.GetDeletionTimestamp() != nil {
		return act.Plan{Why: "the group is being deleted"}
	}
	return o.complete(func() act.Plan { return act.Plan{Why: "its pods reserve them"} })
}

// fromGroup returns the claims that a pod has from its PodGroup: those that are the same in
// name, claim and template.
func fromGroup(pod *corev1.Pod, group *schedulingv1alpha2.PodGroup) map[string]*string {
	shared := map[string]*string{}
	of := ownerOfGroup(group)
	for _, w := range ownerOfPod(pod).wants {
		same := func(g want) bool {
			return g.name == w.name && ptr.Equal(g.claim, w.claim) && ptr.Equal(g.template, w.template)
		}
		if w.template != nil && slices.ContainsFunc(of.wants, same) {
			e, _ := of.entryOf(w.name)
			shared[w.name] = e.claim
		}
	}
	return shared
}
