package servicecidrs

import (
	"iter"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

type change func(*networkingv1.ServiceCIDR)

func cidr(name string, changes ...change) *networkingv1.ServiceCIDR {
	c := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "uid", Finalizers: []string{finalizer}}}
	for _, change := range changes {
		change(c)
	}
	return c
}

func of(cidrs ...string) change {
	return func(c *networkingv1.ServiceCIDR) { c.Spec.CIDRs = cidrs }
}

func deletedAgo(ago time.Duration) change {
	return func(c *networkingv1.ServiceCIDR) { c.DeletionTimestamp = &metav1.Time{Time: noon.Add(-ago)} }
}

func finalizers(names ...string) change {
	return func(c *networkingv1.ServiceCIDR) { c.Finalizers = names }
}

func ready(status metav1.ConditionStatus, reason, message string) change {
	return func(c *networkingv1.ServiceCIDR) {
		c.Status.Conditions = []metav1.Condition{{Type: "Ready", Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(noon.Add(-time.Hour))}}
	}
}

func handingOut(addresses ...string) func(netip.Prefix) iter.Seq[netip.Addr] {
	return func(prefix netip.Prefix) iter.Seq[netip.Addr] {
		var within []netip.Addr
		for _, address := range addresses {
			if a := netip.MustParseAddr(address); prefix.Contains(a) {
				within = append(within, a)
			}
		}
		return slices.Values(within)
	}
}

func condition(status metav1.ConditionStatus, reason, message string) *metav1.Condition {
	return &metav1.Condition{Type: "Ready", Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(noon)}
}

var (
	isReady = ready(metav1.ConditionTrue, "", readyMessage)
	isHeld  = condition(metav1.ConditionFalse, "Terminating", heldMessage)
	freed   = decision{RemoveFinalizer: true, Why: "it is deleted, and no address needs it"}
)

func held(address string, ready *metav1.Condition) decision {
	return decision{Ready: ready, Why: "it is being deleted, but " + address + " is in no other ServiceCIDR"}
}

func TestDecideWhileItStays(t *testing.T) {
	needed := "adding the finalizer and the condition Ready"
	for name, tc := range map[string]struct {
		cidr *networkingv1.ServiceCIDR
		want decision
	}{
		"a new one is protected and ready": {
			cidr("a", finalizers()), decision{AddFinalizer: true, Ready: condition("True", "", readyMessage), Why: needed}},
		"one that is protected and ready is left alone": {
			cidr("a", isReady), decision{Why: "nothing differs"}},
		"the finalizer that somebody took comes back": {
			cidr("a", isReady, finalizers("other")), decision{AddFinalizer: true, Why: needed}},
		"one that others call unready is ready again": {
			cidr("a", ready("False", "Other", "no")), decision{Ready: condition("True", "", readyMessage), Why: needed}},
		"the condition in other words is put right": {
			cidr("a", ready("True", "", "fine")), decision{Ready: condition("True", "", readyMessage), Why: needed}},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.cidr.DeepCopy()
			if diff := cmp.Diff(tc.want, decide(observed{cidr: tc.cidr}, noon)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, tc.cidr); diff != "" {
				t.Errorf("the cached object was changed: %s", diff)
			}
		})
	}
}

func TestDecideWhenItIsDeleted(t *testing.T) {
	long, just := deletedAgo(time.Minute), deletedAgo(4*time.Second)
	for name, tc := range map[string]struct {
		cidr      *networkingv1.ServiceCIDR
		others    []*networkingv1.ServiceCIDR
		addresses []string
		want      decision
	}{
		"without addresses it goes": {
			cidr("a", long, of("10.0.0.0/24")), nil, nil, freed},
		"but not before API servers had time to hear of it": {
			cidr("a", just, of("10.0.0.0/24")), nil, nil,
			decision{Wait: 6 * time.Second, Why: "it is being deleted; waiting until all API servers know it"}},
		"the grace period ends to the second": {
			cidr("a", deletedAgo(gracePeriod), of("10.0.0.0/24")), nil, nil, freed},
		"an address holds it, and it says so": {
			cidr("a", long, isReady, of("10.0.0.0/24")), nil, []string{"10.0.0.7"}, held("10.0.0.7", isHeld)},
		"that is said once": {
			cidr("a", long, ready("False", "Terminating", heldMessage), of("10.0.0.0/24")), nil, []string{"10.0.0.7"}, held("10.0.0.7", nil)},
		"an address of another range does not hold it": {
			cidr("a", long, of("10.0.0.0/24")), nil, []string{"10.0.1.7"}, freed},
		"an equal range takes the address over": {
			cidr("a", long, of("10.0.0.0/24")), []*networkingv1.ServiceCIDR{cidr("b", of("10.0.0.0/24"))}, []string{"10.0.0.7"}, freed},
		"so does a larger one": {
			cidr("a", long, of("10.0.0.0/24")), []*networkingv1.ServiceCIDR{cidr("b", of("10.0.0.0/16"))}, []string{"10.0.0.7"}, freed},
		"and a smaller one that the address is in": {
			cidr("a", long, of("10.0.0.0/24")), []*networkingv1.ServiceCIDR{cidr("b", of("10.0.0.0/28"))}, []string{"10.0.0.7"}, freed},
		"a smaller one that the address is not in does not help": {
			cidr("a", long, isReady, of("10.0.0.0/24")), []*networkingv1.ServiceCIDR{cidr("b", of("10.0.0.0/28"))}, []string{"10.0.0.7", "10.0.0.77"}, held("10.0.0.77", isHeld)},
		"two smaller ones share the addresses": {
			cidr("a", long, of("10.0.0.0/24")), []*networkingv1.ServiceCIDR{cidr("b", of("10.0.0.0/25")), cidr("c", of("10.0.0.128/25"))}, []string{"10.0.0.7", "10.0.0.200"}, freed},
		"each range of a dual-stack one counts": {
			cidr("a", long, isReady, of("10.0.0.0/24", "fd00::/112")), []*networkingv1.ServiceCIDR{cidr("b", of("10.0.0.0/16"))}, []string{"10.0.0.7", "fd00::7"}, held("fd00::7", isHeld)},
		"a dual-stack one goes when both ranges are covered": {
			cidr("a", long, of("10.0.0.0/24", "fd00::/112")), []*networkingv1.ServiceCIDR{cidr("b", of("10.0.0.0/16")), cidr("c", of("fd00::/108"))}, []string{"10.0.0.7", "fd00::7"}, freed},
		"of two that are deleted together, the first keeps the addresses": {
			cidr("a", long, isReady, of("10.0.0.0/24")), []*networkingv1.ServiceCIDR{cidr("b", long, of("10.0.0.0/24"))}, []string{"10.0.0.7"}, held("10.0.0.7", isHeld)},
		"and the second goes": {
			cidr("b", long, of("10.0.0.0/24")), []*networkingv1.ServiceCIDR{cidr("a", long, of("10.0.0.0/24"))}, []string{"10.0.0.7"}, freed},
		"of two that are deleted together, the larger keeps the addresses": {
			cidr("a", long, of("10.0.0.0/24")), []*networkingv1.ServiceCIDR{cidr("b", long, of("10.0.0.0/16"))}, []string{"10.0.0.7"}, freed},
		"one that is about to go takes nothing over": {
			cidr("b", long, isReady, of("10.0.0.0/24")), []*networkingv1.ServiceCIDR{cidr("a", long, of("10.0.0.0/24"), finalizers("other"))}, []string{"10.0.0.7"}, held("10.0.0.7", isHeld)},
		"what only others hold is left to them": {
			cidr("a", long, of("10.0.0.0/24"), finalizers("other")), nil, nil, decision{Why: "it is deleted, and others hold it"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(around(tc.cidr, tc.others, handingOut(tc.addresses...)), noon)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// However deletions are mixed, an address that was in a ServiceCIDR stays in one.
func TestOneOfTheDeletedStays(t *testing.T) {
	all := []*networkingv1.ServiceCIDR{
		cidr("a", of("10.0.0.0/24")), cidr("b", of("10.0.0.0/24")), cidr("c", of("10.0.0.0/16")),
		cidr("d", of("10.0.0.0/28", "fd00::/112")), cidr("e", of("10.0.0.0/28", "fd00::/112")),
	}
	for mask := range 1 << len(all) {
		var left []*networkingv1.ServiceCIDR
		for i, c := range all {
			if mask&(1<<i) != 0 {
				left = append(left, cidr(c.Name, deletedAgo(time.Minute), of(c.Spec.CIDRs...)))
			}
		}
		if len(left) == 0 {
			continue
		}
		for changed := true; changed; {
			changed = false
			for i, c := range left {
				others := slices.Delete(slices.Clone(left), i, i+1)
				if decide(around(c, others, handingOut("10.0.0.7")), noon).RemoveFinalizer {
					left, changed = others, true
					break
				}
			}
		}
		if len(left) != 1 {
			t.Errorf("of %b, %d are left, want one", mask, len(left))
		}
	}
}
