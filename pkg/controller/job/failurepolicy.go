package job

import (
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
)

// match is what a policy says of a failed pod. Without a rule that applies the
// failure counts against the limits, and action is empty.
type match struct {
	action batchv1.PodFailurePolicyAction
	// why explains why the Job fails; only with FailJob.
	why string
}

// counts reports whether the failure counts.
func (m match) counts() bool { return m.action != batchv1.PodFailurePolicyActionIgnore }

// matchFailure looks for the first rule that applies to a failed pod. An action
// that is not known is that of a rule which is not there.
func matchFailure(policy *batchv1.PodFailurePolicy, pod *corev1.Pod) match {
	if policy == nil {
		return match{}
	}
	for i := range policy.Rules {
		rule := &policy.Rules[i]
		what, applies := applies(rule, pod)
		if !applies {
			continue
		}
		switch rule.Action {
		case batchv1.PodFailurePolicyActionFailJob:
			return match{rule.Action, fmt.Sprintf("%s matching %v rule at index %d", what, rule.Action, i)}
		case batchv1.PodFailurePolicyActionIgnore, batchv1.PodFailurePolicyActionFailIndex, batchv1.PodFailurePolicyActionCount:
			return match{action: rule.Action}
		}
	}
	return match{}
}

// applies reports whether the rule is about this pod, and by what.
func applies(rule *batchv1.PodFailurePolicyRule, pod *corev1.Pod) (string, bool) {
	if rule.OnExitCodes != nil {
		for _, statuses := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses} {
			for i := range statuses {
				if s := &statuses[i]; exitedAs(rule.OnExitCodes, s) {
					return fmt.Sprintf("Container %s for pod %s/%s failed with exit code %v", s.Name, pod.Namespace, pod.Name, s.State.Terminated.ExitCode), true
				}
			}
		}
		return "", false
	}
	// Of several conditions that match, the pod's first one is named.
	for i := range pod.Status.Conditions {
		c := &pod.Status.Conditions[i]
		for _, pattern := range rule.OnPodConditions {
			if c.Type == pattern.Type && c.Status == pattern.Status {
				return fmt.Sprintf("Pod %s/%s has condition %v", pod.Namespace, pod.Name, c.Type), true
			}
		}
	}
	return "", false
}

// exitedAs reports whether a container has failed in the way that is required. One
// that ended well never has.
func exitedAs(required *batchv1.PodFailurePolicyOnExitCodesRequirement, status *corev1.ContainerStatus) bool {
	ended := status.State.Terminated
	if ended == nil || ended.ExitCode == 0 || (required.ContainerName != nil && *required.ContainerName != status.Name) {
		return false
	}
	switch listed := slices.Contains(required.Values, ended.ExitCode); required.Operator {
	case batchv1.PodFailurePolicyOnExitCodesOpIn:
		return listed
	case batchv1.PodFailurePolicyOnExitCodesOpNotIn:
		return !listed
	}
	return false
}
