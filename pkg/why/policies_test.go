package why

import (
	"math"
	"slices"
	"testing"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestNodes(t *testing.T) {
	node := func(ready corev1.ConditionStatus, change ...func(*corev1.Node)) *corev1.Node {
		n := &corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "Said", LastTransitionTime: *ago(time.Minute)}}}}
		for _, f := range change {
			f(n)
		}
		return n
	}
	taint := func(effect corev1.TaintEffect) func(*corev1.Node) {
		return func(n *corev1.Node) {
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: "k", Effect: effect, TimeAdded: ago(10 * time.Second)})
		}
	}
	tolerates := func(seconds *int64) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Tolerations = []corev1.Toleration{{Key: "k", Operator: corev1.TolerationOpExists, TolerationSeconds: seconds}}
		}
	}
	pods := []*corev1.Pod{pod(), pod(tolerates(nil)), pod(tolerates(ptr.To[int64](math.MaxInt64))), pod(tolerates(ptr.To[int64](60)))}
	check(t, map[string]judgement{
		"all is well": {judgeNode(node(corev1.ConditionTrue), pods, true, noon), Complete, "it is ready"},
		"cordoned":    {judgeNode(node(corev1.ConditionTrue, func(n *corev1.Node) { n.Spec.Unschedulable = true }), pods, true, noon), Paused, "it is cordoned (spec.unschedulable): it keeps its pods and gets no new ones"},
		"not for new": {judgeNode(node(corev1.ConditionTrue, taint(corev1.TaintEffectNoSchedule)), pods, true, noon), Complete, "it is ready, with taints k:NoSchedule"},
		"pods leave":  {judgeNode(node(corev1.ConditionTrue, taint(corev1.TaintEffectNoExecute)), pods, true, noon), Progressing, "it is ready, with taints k:NoExecute; 2 of 4 pods leave or have to"},
		"silent":      {judgeNode(node(corev1.ConditionUnknown, taint(corev1.TaintEffectNoExecute)), nil, false, noon), Waiting, "it has not been ready for 60s (Said), with taints k:NoExecute"},
	})
	if f := judgeNode(node(corev1.ConditionTrue, taint(corev1.TaintEffectNoExecute)), pods, true, noon); f.until != noon.Add(50*time.Second) {
		t.Errorf("the next pod leaves at %s", f.until)
	}
}

func TestPolicies(t *testing.T) {
	budget := func(healthy, must, expected, allowed int32, change ...func(*policyv1.PodDisruptionBudget)) finding {
		b := &policyv1.PodDisruptionBudget{Status: policyv1.PodDisruptionBudgetStatus{CurrentHealthy: healthy, DesiredHealthy: must, ExpectedPods: expected, DisruptionsAllowed: allowed}}
		for _, f := range change {
			f(b)
		}
		return judgeBudget(b)
	}
	failed := func(b *policyv1.PodDisruptionBudget) {
		b.Status.Conditions = []metav1.Condition{{Type: policyv1.DisruptionAllowedCondition, Reason: policyv1.SyncFailedReason, Message: "no scale"}}
	}
	always := func(b *policyv1.PodDisruptionBudget) {
		b.Spec.UnhealthyPodEvictionPolicy = ptr.To(policyv1.AlwaysAllow)
	}
	quota := func(hard, used string) finding {
		limit := corev1.ResourceList{"pods": resource.MustParse(hard)}
		return judgeQuota(&corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: limit}, Status: corev1.ResourceQuotaStatus{Hard: limit, Used: corev1.ResourceList{"pods": resource.MustParse(used)}}})
	}
	check(t, map[string]judgement{
		"a budget that allows":   {budget(3, 2, 3, 1), Complete, "it allows 1 eviction: 3 of 3 expected pods healthy, and 2 must be"},
		"a budget that refuses":  {budget(2, 2, 2, 0), Blocked, "it refuses every eviction: 2 of 2 expected pods healthy, and 2 must be"},
		"but for one not ready":  {budget(2, 2, 3, 0), Blocked, "it refuses to evict a pod that is ready: 2 of 3 expected pods healthy, and 2 must be"},
		"with too few":           {budget(1, 2, 3, 0), Blocked, "it refuses every eviction: 1 of 3 expected pods healthy, and 2 must be"},
		"but always for those":   {budget(1, 2, 3, 0, always), Blocked, "it refuses to evict a pod that is ready: 1 of 3 expected pods healthy, and 2 must be"},
		"a budget of nobody":     {budget(0, 0, 0, 0), Complete, "it covers no pod"},
		"a budget without scale": {budget(0, 0, 0, 0, failed), Blocked, "it allows no eviction, as its numbers cannot be computed: no scale"},
		"a full quota":           {quota("2", "2"), Complete, "it is used up, and refuses more of pods"},
		"a quota with place":     {quota("2", "1"), Complete, "it has place for more of everything that it limits"},
		"a new quota":            {judgeQuota(&corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"pods": resource.MustParse("1")}}}), Progressing, "its use has not been counted yet"},
	})
}

func TestAutoscalers(t *testing.T) {
	hpa := func(current, desired int32, conditions ...autoscalingv2.HorizontalPodAutoscalerCondition) finding {
		h := &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 5, ScaleTargetRef: autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", Name: "web"}},
			Status: autoscalingv2.HorizontalPodAutoscalerStatus{CurrentReplicas: current, DesiredReplicas: desired, Conditions: conditions}}
		return judgeAutoscaler(h)
	}
	is := func(kind autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus, reason string) autoscalingv2.HorizontalPodAutoscalerCondition {
		return autoscalingv2.HorizontalPodAutoscalerCondition{Type: kind, Status: status, Reason: reason, Message: "because"}
	}
	able := is(autoscalingv2.AbleToScale, corev1.ConditionTrue, "ReadyForNewScale")
	check(t, map[string]judgement{
		"as wanted":      {hpa(3, 3, able), Complete, "Deployment web has the 3 replicas that its metrics ask for, between 1 and 5"},
		"not seen":       {hpa(0, 0), Progressing, unseen},
		"scaling":        {hpa(3, 4, able), Progressing, "Deployment web has 3 replicas, and is scaled to 4"},
		"at its limit":   {hpa(5, 5, able, is(autoscalingv2.ScalingLimited, corev1.ConditionTrue, "TooManyReplicas")), Blocked, "it is at its limit: its metrics ask for more than 5 replicas of Deployment web (maxReplicas): because"},
		"at its least":   {hpa(1, 1, able, is(autoscalingv2.ScalingLimited, corev1.ConditionTrue, "TooFewReplicas")), Complete, "Deployment web has the least that it may have: 1 replica (minReplicas)"},
		"in its window":  {hpa(4, 4, is(autoscalingv2.AbleToScale, corev1.ConditionTrue, "ScaleDownStabilized")), Waiting, "its stabilization window holds Deployment web at 4 replicas (ScaleDownStabilized): because"},
		"held back":      {hpa(3, 3, able, is(autoscalingv2.ScalingLimited, corev1.ConditionTrue, "ScaleUpLimit")), Waiting, "its behavior holds Deployment web at 3 replicas (ScaleUpLimit): because"},
		"no target":      {hpa(0, 0, is(autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedGetScale")), Blocked, "it cannot scale Deployment web (FailedGetScale): because"},
		"no metrics":     {hpa(3, 3, able, is(autoscalingv2.ScalingActive, corev1.ConditionFalse, "FailedGetResourceMetric")), Blocked, "it cannot tell how many replicas Deployment web needs (FailedGetResourceMetric): because"},
		"scaled to zero": {hpa(0, 0, able, is(autoscalingv2.ScalingActive, corev1.ConditionFalse, "ScalingDisabled")), Paused, "Deployment web has no replicas, and is not scaled until it has"},
	})
}

func TestNamespacesAndOthersThatEnd(t *testing.T) {
	namespace := func(conditions ...corev1.NamespaceCondition) *corev1.Namespace {
		return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ago(time.Minute)}, Spec: corev1.NamespaceSpec{Finalizers: []corev1.FinalizerName{"kubernetes"}}, Status: corev1.NamespaceStatus{Conditions: conditions}}
	}
	is := func(kind corev1.NamespaceConditionType) corev1.NamespaceCondition {
		return corev1.NamespaceCondition{Type: kind, Status: corev1.ConditionTrue, Message: "about " + string(kind)}
	}
	leaving := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ago(time.Hour), Finalizers: []string{"b", "a"}}}
	check(t, map[string]judgement{
		"active":            {judgeNamespace(&corev1.Namespace{}, nil, noon), Complete, "it is active"},
		"emptied":           {judgeNamespace(namespace(is(corev1.NamespaceContentRemaining)), nil, noon), Progressing, "it has been deleted for 60s, and is being emptied: about NamespaceContentRemaining"},
		"cannot end":        {judgeNamespace(namespace(is(corev1.NamespaceContentRemaining), is(corev1.NamespaceFinalizersRemaining)), []string{"1 configmaps left"}, noon), Blocked, "it has been deleted for 60s, and cannot end: NamespaceFinalizersRemaining: about NamespaceFinalizersRemaining"},
		"discovery":         {judgeNamespace(namespace(is(corev1.NamespaceDeletionDiscoveryFailure)), nil, noon), Blocked, "it has been deleted for 60s, and cannot end: NamespaceDeletionDiscoveryFailure: about NamespaceDeletionDiscoveryFailure"},
		"anything":          {judgeAny(&corev1.ConfigMap{}, noon), Unknown, "it exists, and nothing here judges objects of its kind"},
		"a custom resource": {judgeAny(&metav1.PartialObjectMetadata{}, noon), Unknown, "it exists, and no controller here reads more of it than its metadata"},
		"held":              {judgeAny(leaving, noon), Waiting, "it has been deleted for 60m, and stays until its 2 finalizers have been taken off: a, b"},
		"gone soon":         {judgeAny(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: ago(time.Second)}}, noon), Progressing, "it is being deleted"},
	})
	owned := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Finalizers: []string{"b", "a"}, OwnerReferences: []metav1.OwnerReference{{Kind: "Widget", Name: "w"}}}}
	if f := judgeAny(owned, noon); !slices.Equal(f.facts, []string{"owned by Widget w", "finalizers a, b"}) {
		t.Errorf("what is known of it: %q", f.facts)
	}
}
