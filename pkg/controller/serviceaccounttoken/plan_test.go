package serviceaccounttoken

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func TestPlanOfASecret(t *testing.T) {
	builder := account("builder", "1")
	leaving := secret(func(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{} })
	tokenless := secret(func(s *corev1.Secret) { delete(s.Data, "token") })
	for name, tc := range map[string]struct {
		observed   observedSecret
		plans, why string
	}{
		"a complete one is left alone":        {observedSecret{secret: secret(nil), account: builder}, "", "it is complete"},
		"an empty one is filled":              {observedSecret{secret: secret(empty), account: builder, token: "signed"}, "update Secret builder-token", "it lacks the root CA, the namespace, a token"},
		"one without a token gets one":        {observedSecret{secret: tokenless, account: builder, token: "signed"}, "update Secret builder-token", "it lacks a token"},
		"one without an account is deleted":   {observedSecret{secret: secret(nil)}, "delete Secret builder-token unchanged", "its service account is gone"},
		"one on its way out is not":           {observedSecret{secret: leaving}, "", "its service account is gone, and it is being deleted"},
		"one that is gone is taken off":       {observedSecret{account: listing()}, "update ServiceAccount builder", "the secret is gone, and its service account lists it"},
		"one whose name is taken stays there": {observedSecret{account: listing(), taken: true}, "", "the secret is gone, and another one has taken the name"},
		"one that nobody lists is done":       {observedSecret{}, "", "the secret is gone and not listed"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.observed.key, tc.observed.rootCA = keyOf(secret(nil)), ca
			p := planSecret(tc.observed, time.Time{})
			if got := fixture.Planned(p); got != tc.plans || p.Why != tc.why {
				t.Errorf("plans %q because %q", got, p.Why)
			}
			if len(p.Stages) > 0 {
				checkWritten(t, p.Stages[0].Steps[0])
			}
		})
	}
}

// checkWritten wants a secret complete, and a service account without it.
func checkWritten(t *testing.T, step act.Step) {
	t.Helper()
	switch o := step.About().(type) {
	case *corev1.Secret:
		if got := string(o.Data["token"]); got != "signed" || lacking(o, ca) != (lack{}) {
			t.Errorf("it still lacks %s", lacking(o, ca))
		}
	case *corev1.ServiceAccount:
		if refers(o, "builder-token") || !refers(o, "other") {
			t.Errorf("lists %v", o.Secrets)
		}
	}
}

func TestPlanOfAnAccount(t *testing.T) {
	leaving := secret(func(s *corev1.Secret) { s.DeletionTimestamp = &metav1.Time{} })
	newer := secret(func(s *corev1.Secret) { s.Annotations["kubernetes.io/service-account.uid"] = "uid-2" })
	second := secret(func(s *corev1.Secret) { s.Name = "second" })
	for name, tc := range map[string]struct {
		observed   observedAccount
		plans, why string
	}{
		"one that is there":        {observedAccount{there: true}, "", "the service account is there"},
		"one that had no tokens":   {observedAccount{}, "", "the service account is gone, and so are its tokens"},
		"one whose tokens go":      {observedAccount{secrets: []*corev1.Secret{leaving}}, "", "the service account is gone, and so are its tokens"},
		"one whose name was taken": {observedAccount{secrets: []*corev1.Secret{newer}}, "", "the service account is gone, and so are its tokens"},
		"one with two tokens": {observedAccount{secrets: []*corev1.Secret{secret(nil), newer, second}},
			"delete Secret builder-token unchanged, delete Secret second unchanged", "the service account is gone: deleting its 2 token secrets"},
	} {
		t.Run(name, func(t *testing.T) {
			tc.observed.key = accountKey{"team", "builder", "uid-1"}
			if p := planAccount(tc.observed, time.Time{}); fixture.Planned(p) != tc.plans || p.Why != tc.why {
				t.Errorf("plans %q because %q", fixture.Planned(p), p.Why)
			}
		})
	}
}
