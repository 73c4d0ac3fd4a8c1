package validatingadmissionpolicystatus

import (
	admissionv1 "k8s.io/api/admissionregistration/v1"
)

// plan says whether a policy is to be checked, and what came of it.
type plan struct {
	Check    bool     `json:"check"`
	Warnings int      `json:"warnings,omitempty"`
	Left     []string `json:"leftOut,omitempty"`
	Why      string   `json:"why"`
}

// decide says whether a policy, nil if it is gone, has a generation that was not checked.
func decide(policy *admissionv1.ValidatingAdmissionPolicy) plan {
	switch {
	case policy == nil:
		return plan{Why: "the policy is gone"}
	case policy.Generation <= policy.Status.ObservedGeneration:
		return plan{Why: "this generation was checked"}
	}
	return plan{Check: true, Why: "this generation was not checked"}
}
