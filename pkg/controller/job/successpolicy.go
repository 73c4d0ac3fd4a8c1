package job

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
)

// matchSuccess looks for the first rule that these indexes fulfil, and says which.
func matchSuccess(policy *batchv1.SuccessPolicy, completions int, succeeded indexes) (string, bool) {
	if policy == nil || len(succeeded) == 0 {
		return "", false
	}
	for i := range policy.Rules {
		if fulfilled(&policy.Rules[i], completions, succeeded) {
			return fmt.Sprintf("Matched rules at index %d", i), true
		}
	}
	return "", false
}

// fulfilled reports whether enough of the rule's indexes, or all of them, have
// succeeded; without indexes it is about any.
func fulfilled(rule *batchv1.SuccessPolicyRule, completions int, succeeded indexes) bool {
	have, want := succeeded.total(), completions
	if rule.SucceededIndexes != nil {
		named := parseIndexes(*rule.SucceededIndexes, completions)
		have, want = succeeded.common(named), named.total()
		if want == 0 {
			return false
		}
	} else if rule.SucceededCount == nil {
		return false
	}
	if rule.SucceededCount != nil {
		want = int(*rule.SucceededCount)
	}
	return have >= want
}
