package namespace

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// good are the conditions of a namespace that empties without trouble, in the
// order in which they are written.
var good = []corev1.NamespaceCondition{
	{Type: corev1.NamespaceDeletionDiscoveryFailure, Reason: "ResourcesDiscovered", Message: "All resources successfully discovered"},
	{Type: corev1.NamespaceDeletionGVParsingFailure, Reason: "ParsedGroupVersions", Message: "All legacy kube types successfully parsed"},
	{Type: corev1.NamespaceDeletionContentFailure, Reason: "ContentDeleted", Message: "All content successfully deleted, may be waiting on finalization"},
	{Type: corev1.NamespaceContentRemaining, Reason: "ContentRemoved", Message: "All content successfully removed"},
	{Type: corev1.NamespaceFinalizersRemaining, Reason: "ContentHasNoFinalizers", Message: "All content-preserving finalizers finished"},
}

// trouble returns the conditions that the outcome makes true.
func trouble(o *outcome) []corev1.NamespaceCondition {
	var bad []corev1.NamespaceCondition
	add := func(kind corev1.NamespaceConditionType, reason, message string) {
		bad = append(bad, corev1.NamespaceCondition{Type: kind, Reason: reason, Message: message})
	}
	if o.undiscovered != nil {
		add(corev1.NamespaceDeletionDiscoveryFailure, "DiscoveryFailed", describeDiscovery(o.undiscovered, o.failing))
	}
	if len(o.unparsed) > 0 {
		add(corev1.NamespaceDeletionGVParsingFailure, "GroupVersionParsingFailed", joined(o.unparsed))
	}
	if len(o.failed) > 0 {
		add(corev1.NamespaceDeletionContentFailure, "ContentDeletionFailed", describeFailures(o.failed))
	}
	if o.podsFirst {
		return bad // what remains is counted once the pods are gone
	}
	if len(o.remaining) > 0 {
		add(corev1.NamespaceContentRemaining, "SomeResourcesRemain", describeRemaining(o.remaining))
	}
	if len(o.finalizers) > 0 {
		add(corev1.NamespaceFinalizersRemaining, "SomeFinalizersRemain", describeFinalizers(o.finalizers))
	}
	return bad
}

// withConditions returns the status with the conditions of the outcome. The time
// of a transition moves only with the condition's status.
func withConditions(status corev1.NamespaceStatus, o *outcome, now metav1.Time) corev1.NamespaceStatus {
	status = *status.DeepCopy()
	bad := trouble(o)
	for _, condition := range good {
		condition.Status = corev1.ConditionFalse
		isKind := func(c corev1.NamespaceCondition) bool { return c.Type == condition.Type }
		if i := slices.IndexFunc(bad, isKind); i >= 0 {
			condition = bad[i]
			condition.Status = corev1.ConditionTrue
		}
		condition.LastTransitionTime = now
		i := slices.IndexFunc(status.Conditions, isKind)
		if i < 0 {
			status.Conditions = append(status.Conditions, condition)
			continue
		}
		if status.Conditions[i].Status == condition.Status {
			condition.LastTransitionTime = status.Conditions[i].LastTransitionTime
		}
		status.Conditions[i] = condition
	}
	return status
}
