package serviceaccount

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func namespace(phase corev1.NamespacePhase) *corev1.Namespace {
	ns := &corev1.Namespace{}
	ns.Name = "team"
	ns.Status.Phase = phase
	return ns
}

func TestDecide(t *testing.T) {
	for name, tc := range map[string]struct {
		namespace *corev1.Namespace
		exists    bool
		want      plan
	}{
		"an active namespace without the account gets it": {
			namespace(corev1.NamespaceActive), false, plan{Create: []string{"default"}, Why: "the default service account is missing"}},
		"an active namespace with the account is left alone": {
			namespace(corev1.NamespaceActive), true, plan{Why: "nothing is missing"}},
		"a terminating namespace gets nothing": {
			namespace(corev1.NamespaceTerminating), false, plan{Why: "the namespace is not active"}},
		"a namespace whose phase is not known yet waits": {
			namespace(""), false, plan{Why: "the namespace is not active"}},
		"a namespace that is gone gets nothing": {
			nil, false, plan{Why: "the namespace is gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(tc.namespace, func(string) bool { return tc.exists })
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
