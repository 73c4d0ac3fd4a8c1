package validatingadmissionpolicystatus

import (
	"errors"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
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

func TestPlan(t *testing.T) {
	const report = "apply ValidatingAdmissionPolicy p"
	warned := []admissionv1.ExpressionWarning{{FieldRef: "spec.validations[0].expression", Warning: "undefined"}}
	away := errors.New("connection refused")
	for name, tc := range map[string]struct {
		o          observed
		wants, why string
		again      time.Duration
	}{
		"a new policy is reported": {observed{policy: checked(1, 0)}, report, "generation 1 was not checked: found 0 warnings", keepSchemas},
		"a changed one is reported again": {observed{policy: checked(3, 2), warnings: warned, left: []string{"a", "b"}}, report,
			"generation 3 was not checked: found 1 warnings, left out a, b", keepSchemas},
		"nothing is reported of a check that was cut short": {observed{policy: checked(1, 0), warnings: warned, err: away}, "", "generation 1 cannot be checked now", 0},
		"one that was checked is left alone":                {observed{policy: checked(2, 2)}, "", "generation 2 was checked", 0},
		"it comes again while schemas are kept":             {observed{policy: checked(2, 2), keeps: true}, "", "generation 2 was checked", keepSchemas},
		"a status from the future is left alone":            {observed{policy: checked(2, 3)}, "", "generation 2 was checked", 0},
		"a policy that is gone needs nothing more":          {observed{}, "", "the policy is gone", 0},
		"a policy that is gone comes again for the schemas": {observed{keeps: true}, "", "the policy is gone", keepSchemas},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(tc.o, time.Time{})
			if fixture.Planned(p) != tc.wants || p.Why != tc.why || p.RequeueAfter != tc.again || !errors.Is(p.Err, tc.o.err) {
				t.Errorf("wants %q because %q, again after %s, %v", fixture.Planned(p), p.Why, p.RequeueAfter, p.Err)
			}
		})
	}
}
