package why

import (
	"fmt"
	"slices"
	"strings"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/utils/ptr"
)

func judgeBudget(b *policyv1.PodDisruptionBudget) finding {
	s := &b.Status
	f := finding{facts: []string{
		fmt.Sprintf("%d of %d expected pods healthy", s.CurrentHealthy, s.ExpectedPods),
		fmt.Sprintf("%d must be healthy", s.DesiredHealthy),
		plural(s.DisruptionsAllowed, "eviction") + " allowed",
	}}
	if n := len(s.DisruptedPods); n > 0 {
		f.facts = append(f.facts, plural(n, "eviction")+" in progress")
	}
	for _, c := range s.Conditions {
		if c.Type == policyv1.DisruptionAllowedCondition && c.Reason == policyv1.SyncFailedReason {
			return f.with(Blocked, "it allows no eviction, as its numbers cannot be computed").because(c.Message)
		}
	}
	switch {
	case s.ObservedGeneration < b.Generation:
		return f.with(Progressing, unseen)
	case s.ExpectedPods == 0:
		return f.with(Complete, "it covers no pod")
	case s.DisruptionsAllowed == 0:
		refused := "every eviction"
		if s.CurrentHealthy < s.ExpectedPods && evictsUnready(b) {
			refused = "to evict a pod that is ready"
		}
		return f.with(Blocked, fmt.Sprintf("it refuses %s: %d of %s healthy, and %d must be",
			refused, s.CurrentHealthy, plural(s.ExpectedPods, "expected pod"), s.DesiredHealthy))
	}
	return f.with(Complete, fmt.Sprintf("it allows %s: %d of %s healthy, and %d must be",
		plural(s.DisruptionsAllowed, "eviction"), s.CurrentHealthy, plural(s.ExpectedPods, "expected pod"), s.DesiredHealthy))
}

// evictsUnready reports whether pods that are not ready may be evicted whatever is allowed.
func evictsUnready(b *policyv1.PodDisruptionBudget) bool {
	enough := b.Status.DesiredHealthy > 0 && b.Status.CurrentHealthy >= b.Status.DesiredHealthy
	return enough || ptr.Deref(b.Spec.UnhealthyPodEvictionPolicy, policyv1.IfHealthyBudget) == policyv1.AlwaysAllow
}

func judgeAutoscaler(hpa *autoscalingv2.HorizontalPodAutoscaler) finding {
	s := &hpa.Status
	least := wanted(hpa.Spec.MinReplicas)
	f := finding{facts: []string{
		fmt.Sprintf("%d replicas, %d desired", s.CurrentReplicas, s.DesiredReplicas),
		fmt.Sprintf("between %d and %d", least, hpa.Spec.MaxReplicas),
	}}
	if s.LastScaleTime != nil {
		f.facts = append(f.facts, "last scaled at "+s.LastScaleTime.UTC().Format(time.RFC3339))
	}
	conditions := map[autoscalingv2.HorizontalPodAutoscalerConditionType]autoscalingv2.HorizontalPodAutoscalerCondition{}
	for _, c := range s.Conditions {
		conditions[c.Type] = c
		f.facts = append(f.facts, fmt.Sprintf("%s is %s (%s)", c.Type, c.Status, c.Reason))
	}
	target := hpa.Spec.ScaleTargetRef.Kind + " " + hpa.Spec.ScaleTargetRef.Name
	able, active, limited := conditions[autoscalingv2.AbleToScale], conditions[autoscalingv2.ScalingActive], conditions[autoscalingv2.ScalingLimited]
	switch {
	case len(s.Conditions) == 0:
		return f.with(Progressing, unseen)
	case able.Status == corev1.ConditionFalse:
		return f.with(Blocked, fmt.Sprintf("it cannot scale %s (%s)", target, able.Reason)).because(able.Message)
	case active.Status == corev1.ConditionFalse && active.Reason == "ScalingDisabled":
		return f.with(Paused, fmt.Sprintf("%s has no replicas, and is not scaled until it has", target))
	case active.Status == corev1.ConditionFalse:
		return f.with(Blocked, fmt.Sprintf("it cannot tell how many replicas %s needs (%s)", target, active.Reason)).because(active.Message)
	case s.CurrentReplicas != s.DesiredReplicas:
		return f.with(Progressing, fmt.Sprintf("%s has %d replicas, and is scaled to %d", target, s.CurrentReplicas, s.DesiredReplicas))
	case limited.Status == corev1.ConditionTrue && limited.Reason == "TooManyReplicas":
		return f.with(Blocked, fmt.Sprintf("it is at its limit: its metrics ask for more than %d replicas of %s (maxReplicas)", hpa.Spec.MaxReplicas, target)).because(limited.Message)
	case limited.Status == corev1.ConditionTrue && limited.Reason != "TooFewReplicas":
		return f.with(Waiting, fmt.Sprintf("its behavior holds %s at %d replicas (%s)", target, s.DesiredReplicas, limited.Reason)).because(limited.Message)
	case able.Reason == "ScaleDownStabilized" || able.Reason == "ScaleUpStabilized":
		return f.with(Waiting, fmt.Sprintf("its stabilization window holds %s at %d replicas (%s)", target, s.DesiredReplicas, able.Reason)).because(able.Message)
	case limited.Status == corev1.ConditionTrue:
		return f.with(Complete, fmt.Sprintf("%s has the least that it may have: %s (minReplicas)", target, plural(s.CurrentReplicas, "replica")))
	}
	return f.with(Complete, fmt.Sprintf("%s has the %s that its metrics ask for, between %d and %d", target, plural(s.CurrentReplicas, "replica"), least, hpa.Spec.MaxReplicas))
}

func judgeQuota(q *corev1.ResourceQuota) finding {
	var f finding
	var full []string
	for name, hard := range q.Status.Hard {
		used := q.Status.Used[name]
		f.facts = append(f.facts, fmt.Sprintf("%s: %s of %s used", name, used.String(), hard.String()))
		if used.Cmp(hard) >= 0 {
			full = append(full, string(name))
		}
	}
	slices.Sort(f.facts)
	slices.Sort(full)
	switch {
	case len(q.Status.Hard) != len(q.Spec.Hard):
		return f.with(Progressing, "its use has not been counted yet")
	case len(full) > 0:
		return f.with(Complete, "it is used up, and refuses more of "+strings.Join(full, ", "))
	}
	return f.with(Complete, "it has place for more of everything that it limits")
}

func judgeNamespaceHere(l *look, namespace *corev1.Namespace, _ []Controller) finding {
	if namespace.DeletionTimestamp == nil {
		return judgeNamespace(namespace, nil, l.now)
	}
	return judgeNamespace(namespace, l.leftIn(namespace.Name), l.now)
}

// judgeNamespace is about a namespace in which these objects are left, if it is being deleted.
func judgeNamespace(namespace *corev1.Namespace, left []string, now time.Time) finding {
	f := finding{facts: append([]string{"phase " + string(namespace.Status.Phase)}, left...)}
	if namespace.DeletionTimestamp == nil {
		return f.with(Complete, "it is active")
	}
	var reasons, words []string
	remaining, stuck := "", false
	for _, c := range namespace.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			continue
		}
		f.facts = append(f.facts, fmt.Sprintf("%s (%s)", c.Type, c.Reason))
		switch c.Type {
		case corev1.NamespaceContentRemaining:
			remaining = c.Message
		default:
			stuck = true
			reasons, words = append(reasons, string(c.Type)), append(words, c.Message)
		}
	}
	said := "it has been deleted for " + inWords(now.Sub(namespace.DeletionTimestamp.Time))
	switch {
	case stuck:
		return f.with(Blocked, said+", and cannot end: "+strings.Join(reasons, ", ")).because(strings.Join(words, "; "))
	case remaining != "":
		return f.with(Progressing, said+", and is being emptied").because(remaining)
	case len(namespace.Spec.Finalizers) > 0 || len(namespace.Finalizers) > 0:
		return f.with(Progressing, said+", and is being emptied")
	}
	return f.with(Progressing, said+", and is about to go")
}
