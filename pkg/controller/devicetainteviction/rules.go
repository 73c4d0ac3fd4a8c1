package devicetainteviction

import (
	"fmt"
	"time"

	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metaapply "k8s.io/client-go/applyconfigurations/meta/v1"
	resourceapply "k8s.io/client-go/applyconfigurations/resource/v1beta2"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	inProgress = resourcev1beta2.DeviceTaintConditionEvictionInProgress
	// reportInterval is how long a report of a rule stands before the next one.
	reportInterval = 10 * time.Second

	reasonPending   = "PodsPendingEviction"
	reasonCompleted = "Completed"
	reasonNone      = "NotStarted"
	reasonDryRun    = "NoEffect"
	reasonOther     = "OtherEffect"
)

// observedRule is what a plan for a DeviceTaintRule is made from.
type observedRule struct {
	// rule is nil when it is gone.
	rule *resourcev1beta2.DeviceTaintRule
	// pods have to go for it, or would have to if its effect was NoExecute.
	pods []key
	// published and allocated are how many devices it selects.
	published, allocated int
	// evicted is how many pods went for it.
	evicted int
	// fresh: this process has not looked at the pods of this spec yet.
	fresh bool
	// woken are the pods to look at.
	woken []key
}

// planRule reports how far the rule is, and has the pods of a new spec looked at after that.
func planRule(o observedRule, now time.Time) act.Plan {
	p := act.Plan{Note: func(act.Results) any { return o }}
	if o.rule == nil {
		p.Why = "the rule is gone"
		return p
	}
	is := meta.FindStatusCondition(o.rule.Status.Conditions, inProgress)
	if dryRunReported(o.rule) {
		p.Why = "the dry run was reported, and that is done once"
		return p
	}
	want := conditionOf(o)
	want.ObservedGeneration, want.LastTransitionTime = o.rule.Generation, metav1.NewTime(now)
	p.Why = want.Reason + ": " + want.Message
	if is != nil && is.ObservedGeneration == want.ObservedGeneration {
		if is.Status == want.Status && is.Reason == want.Reason && is.Message == want.Message {
			return p
		}
		if wait := min(reportInterval-now.Sub(is.LastTransitionTime.Time), reportInterval); wait > 0 {
			p.RequeueAfter = wait
			return p
		}
	}
	p.Stages = act.Stages(act.Apply{
		Of: o.rule, Manager: Name, Force: true, Subresource: "status",
		Configuration: resourceapply.DeviceTaintRule(o.rule.Name).WithUID(o.rule.UID).
			WithStatus(resourceapply.DeviceTaintRuleStatus().WithConditions(metaapply.Condition().
				WithType(want.Type).WithStatus(want.Status).WithReason(want.Reason).WithMessage(want.Message).
				WithObservedGeneration(want.ObservedGeneration).WithLastTransitionTime(want.LastTransitionTime))),
	})
	return p
}

// dryRunReported reports whether it is said what this spec would do.
func dryRunReported(rule *resourcev1beta2.DeviceTaintRule) bool {
	is := meta.FindStatusCondition(rule.Status.Conditions, inProgress)
	return rule.Spec.Taint.Effect == resourcev1beta2.DeviceTaintEffectNone &&
		is != nil && is.Reason == reasonDryRun && is.ObservedGeneration == rule.Generation
}

// conditionOf is what there is to say of a rule.
func conditionOf(o observedRule) metav1.Condition {
	c := metav1.Condition{Type: inProgress, Status: metav1.ConditionFalse}
	namespaces := map[string]bool{}
	for _, pod := range o.pods {
		namespaces[pod.Namespace] = true
	}
	pods, in := len(o.pods), len(namespaces)
	switch effect := o.rule.Spec.Taint.Effect; {
	case effect == resourcev1beta2.DeviceTaintEffectNone:
		c.Reason = reasonDryRun
		c.Message = count(o.published, "published device", "published devices") + " selected. " +
			count(o.allocated, "allocated device", "allocated devices") + " selected. " +
			count(pods, "pod", "pods") + " would be evicted in " + count(in, "namespace", "different namespaces") +
			" if the effect was NoExecute. This information will not be updated again. Recreate the DeviceTaintRule to trigger an update."
	case effect != resourcev1beta2.DeviceTaintEffectNoExecute:
		c.Reason, c.Message = reasonOther, "Eviction only happens for the NoExecute effect."
	case pods > 0:
		c.Status, c.Reason = metav1.ConditionTrue, reasonPending
		c.Message = count(pods, "pod needs", "pods need") + " to be evicted in " + count(in, "namespace", "different namespaces") + "."
	case o.evicted > 0:
		c.Reason = reasonCompleted
	default:
		c.Reason = reasonNone
	}
	if o.evicted > 0 {
		if c.Message != "" {
			c.Message += " "
		}
		c.Message += count(o.evicted, "pod", "pods") + " evicted since starting the controller."
	}
	return c
}

// count says how many there are of something.
func count(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
