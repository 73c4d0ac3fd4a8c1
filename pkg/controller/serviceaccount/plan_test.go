package serviceaccount

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func namespace(phase corev1.NamespacePhase) *corev1.Namespace {
	ns := &corev1.Namespace{}
	ns.Name = "team"
	ns.Status.Phase = phase
	return ns
}

func TestPlan(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace  *corev1.Namespace
		has        bool
		wants, why string
	}{
		"an active namespace without the account gets it": {
			namespace(corev1.NamespaceActive), false, "create ServiceAccount default", "the default service account is missing"},
		"an active namespace with the account is left alone": {
			namespace(corev1.NamespaceActive), true, "", "the default service account is there"},
		"a terminating namespace gets nothing": {
			namespace(corev1.NamespaceTerminating), false, "", "the namespace is not active"},
		"a namespace whose phase is not known yet waits": {
			namespace(""), false, "", "the namespace is not active"},
	} {
		t.Run(name, func(t *testing.T) {
			if p := plan(observed{tc.namespace, tc.has}, time.Time{}); fixture.Planned(p) != tc.wants || p.Why != tc.why {
				t.Errorf("wants %q because %q", fixture.Planned(p), p.Why)
			}
		})
	}
}
