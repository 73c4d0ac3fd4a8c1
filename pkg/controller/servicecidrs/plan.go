package servicecidrs

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"net/netip"
	"slices"
	"time"

	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	networkingapply "k8s.io/client-go/applyconfigurations/networking/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	finalizer = "networking.k8s.io/service-cidr-finalizer"

	// gracePeriod is how long API servers may go on to hand out addresses of a
	// deleted ServiceCIDR, because they have not heard of it.
	gracePeriod = 10 * time.Second

	readyMessage = "Kubernetes Service CIDR is ready"
	heldMessage  = "There are still IPAddresses referencing the ServiceCIDR, please remove them or create a new ServiceCIDR"
)

// observed is a ServiceCIDR and, if it is being deleted, an address that would be in
// none without it; empty if there is none.
type observed struct {
	cidr *networkingv1.ServiceCIDR
	lost string
}

// around is what is observed of a ServiceCIDR that is being deleted, among all others
// and with the addresses that the API server handed out of a range.
func around(cidr *networkingv1.ServiceCIDR, others []*networkingv1.ServiceCIDR, addresses func(netip.Prefix) iter.Seq[netip.Addr]) observed {
	if address, held := holds(rangesOf(cidr), staying(cidr, others), addresses); held {
		return observed{cidr, address.String()}
	}
	return observed{cidr: cidr}
}

// decision says what to write to a ServiceCIDR, and when to look again.
type decision struct {
	AddFinalizer, RemoveFinalizer bool
	// Ready is the condition to apply, nil to leave it.
	Ready *metav1.Condition
	Wait  time.Duration
	Why   string
}

// plan writes the finalizer first: nothing is called ready that is not protected.
func plan(o observed, now time.Time) act.Plan {
	do := decide(o, now)
	var steps []act.Step
	if do.AddFinalizer {
		protect := act.Merge(o.cidr, map[string]any{"finalizers": []string{finalizer}})
		protect.Required = true
		steps = append(steps, protect)
	}
	if do.Ready != nil {
		steps = append(steps, report(o.cidr, do.Ready))
	}
	if do.RemoveFinalizer {
		free := act.Merge(o.cidr, map[string]any{"$deleteFromPrimitiveList/finalizers": []string{finalizer}})
		free.UntilGone = true
		steps = append(steps, free)
	}
	return act.Plan{Why: do.Why, Stages: act.Stages(steps...), RequeueAfter: do.Wait}
}

// report applies the condition.
func report(cidr *networkingv1.ServiceCIDR, ready *metav1.Condition) act.Step {
	condition := metaapply.Condition().WithType(ready.Type).WithStatus(ready.Status).WithReason(ready.Reason).
		WithMessage(ready.Message).WithLastTransitionTime(ready.LastTransitionTime)
	step := act.Apply{
		Of: cidr, Manager: name, Force: true, Subresource: "status",
		Configuration: networkingapply.ServiceCIDR(cidr.Name).WithUID(cidr.UID).
			WithStatus(networkingapply.ServiceCIDRStatus().WithConditions(condition)),
	}
	if ready.Status == metav1.ConditionTrue {
		step.Events = act.Events{On: cidr, FailedReason: "KubernetesServiceCIDRError", Failed: "The ServiceCIDR Status can not be set to Ready=True"}
	}
	return step
}

// decide says what a ServiceCIDR needs.
func decide(o observed, now time.Time) decision {
	cidr := o.cidr
	if cidr.DeletionTimestamp == nil {
		return keep(cidr, now)
	}
	if o.lost != "" {
		ready := metav1.Condition{Type: networkingv1.ServiceCIDRConditionReady, Status: metav1.ConditionFalse,
			Reason: networkingv1.ServiceCIDRReasonTerminating, Message: heldMessage}
		return decision{Ready: changed(cidr, ready, now), Why: fmt.Sprintf("it is being deleted, but %s is in no other ServiceCIDR", o.lost)}
	}
	if !slices.Contains(cidr.Finalizers, finalizer) {
		return decision{Why: "it is deleted, and others hold it"}
	}
	if wait := gracePeriod - now.Sub(cidr.DeletionTimestamp.Time); wait > 0 {
		return decision{Wait: wait, Why: "it is being deleted; waiting until all API servers know it"}
	}
	return decision{RemoveFinalizer: true, Why: "it is deleted, and no address needs it"}
}

// keep is what is decided of a ServiceCIDR that is to stay.
func keep(cidr *networkingv1.ServiceCIDR, now time.Time) decision {
	do := decision{
		AddFinalizer: !slices.Contains(cidr.Finalizers, finalizer),
		Ready: changed(cidr, metav1.Condition{Type: networkingv1.ServiceCIDRConditionReady,
			Status: metav1.ConditionTrue, Message: readyMessage}, now),
		Why: "nothing differs",
	}
	if do.AddFinalizer || do.Ready != nil {
		do.Why = "adding the finalizer and the condition Ready"
	}
	return do
}

// changed is the condition with its time when it is not in the status yet, else nil.
func changed(cidr *networkingv1.ServiceCIDR, want metav1.Condition, now time.Time) *metav1.Condition {
	is := meta.FindStatusCondition(cidr.Status.Conditions, want.Type)
	if is != nil && is.Status == want.Status && is.Reason == want.Reason && is.Message == want.Message {
		return nil
	}
	want.LastTransitionTime = metav1.NewTime(now)
	return &want
}

// holds finds an address in these ranges that would be in none of the ranges that stay.
func holds(ranges, stay []netip.Prefix, addresses func(netip.Prefix) iter.Seq[netip.Addr]) (netip.Addr, bool) {
	for _, own := range ranges {
		if slices.ContainsFunc(stay, func(other netip.Prefix) bool { return contains(other, own) }) {
			continue
		}
		within := slices.DeleteFunc(slices.Clone(stay), func(other netip.Prefix) bool { return !contains(own, other) })
		for address := range addresses(own) {
			if !slices.ContainsFunc(within, func(other netip.Prefix) bool { return other.Contains(address) }) {
				return address, true
			}
		}
	}
	return netip.Addr{}, false
}

// staying are the ranges of the others that a ServiceCIDR may leave addresses to.
// Of those that are deleted together only one may leave them to the other, or
// both would go.
func staying(cidr *networkingv1.ServiceCIDR, others []*networkingv1.ServiceCIDR) []netip.Prefix {
	var stay []netip.Prefix
	for _, other := range others {
		if other.DeletionTimestamp == nil || slices.Contains(other.Finalizers, finalizer) && larger(other, cidr) < 0 {
			stay = append(stay, rangesOf(other)...)
		}
	}
	return stay
}

// larger orders ServiceCIDRs by who keeps the addresses when all are deleted: the
// one with the larger range.
func larger(a, b *networkingv1.ServiceCIDR) int {
	return cmp.Or(cmp.Compare(shortest(a), shortest(b)), cmp.Compare(a.Name, b.Name))
}

func shortest(cidr *networkingv1.ServiceCIDR) int {
	bits := math.MaxInt
	for _, prefix := range rangesOf(cidr) {
		bits = min(bits, prefix.Bits())
	}
	return bits
}
