package validatingadmissionpolicystatus

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// policy is about deployments and pods.
func policy(expressions ...string) *admissionv1.ValidatingAdmissionPolicy {
	p := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: "p", UID: "uid", Generation: 1}}
	about(p, "apps", "deployments")
	about(p, "", "pods")
	for _, expression := range expressions {
		p.Spec.Validations = append(p.Spec.Validations, admissionv1.Validation{Expression: expression})
	}
	return p
}

func about(p *admissionv1.ValidatingAdmissionPolicy, group, resource string) {
	if p.Spec.MatchConstraints == nil {
		p.Spec.MatchConstraints = &admissionv1.MatchResources{}
	}
	p.Spec.MatchConstraints.ResourceRules = append(p.Spec.MatchConstraints.ResourceRules, admissionv1.NamedRuleWithOperations{
		RuleWithOperations: admissionv1.RuleWithOperations{Rule: admissionv1.Rule{
			APIGroups: []string{group}, APIVersions: []string{"v1"}, Resources: []string{resource},
		}},
	})
}

func checked(generation, observed int64) *admissionv1.ValidatingAdmissionPolicy {
	p := policy()
	p.Generation, p.Status.ObservedGeneration = generation, observed
	return p
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		policy *admissionv1.ValidatingAdmissionPolicy
		want   plan
	}{
		"a new policy is checked":                  {checked(1, 0), plan{Check: true, Why: "this generation was not checked"}},
		"a changed one is checked again":           {checked(3, 2), plan{Check: true, Why: "this generation was not checked"}},
		"one that was checked is left alone":       {checked(2, 2), plan{Why: "this generation was checked"}},
		"a status from the future is left alone":   {checked(2, 3), plan{Why: "this generation was checked"}},
		"a policy that is gone needs nothing more": {nil, plan{Why: "the policy is gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(tc.policy)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
