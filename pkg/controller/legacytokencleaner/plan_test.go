package legacytokencleaner

import (
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func TestPlanOfThePass(t *testing.T) {
	for name, tc := range map[string]struct {
		due        time.Time
		namespaces []string
		why        string
		wakes      int
	}{
		"before uses are recorded for a year nothing is woken": {noon.Add(time.Second), nil, "the use of tokens is not recorded for long enough; next check not before 2026-06-01T12:00:01Z", 0},
		"from that second on the namespaces are":               {noon, []string{"a", "b"}, "2 namespaces have generated tokens that are unused for the clean-up period", 2},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(observed{pass: true, unused: year, due: tc.due, namespaces: tc.namespaces}, noon)
			if p.Why != tc.why || p.RequeueAfter != 24*time.Hour || len(p.Stages) > 0 || (p.Note != nil) != (tc.wakes > 0) {
				t.Errorf("plans %q because %q, again after %s", fixture.Planned(p), p.Why, p.RequeueAfter)
			}
			if p.Note != nil && len(p.Note(nil).(found)) != tc.wakes {
				t.Errorf("wakes %v", p.Note(nil))
			}
		})
	}
}

func TestPlanOfANamespace(t *testing.T) {
	secret := func(name, lastUsed, invalidSince string) *corev1.Secret {
		s := &corev1.Secret{ObjectMeta: tokenOf(lastUsed, invalidSince).ObjectMeta}
		s.Name = name
		return s
	}
	lists, unknown := account("a", "b"), errors.New("timeout")
	const marking = `patch Secret a {"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","namespace":"team","uid":"s-1","resourceVersion":"5","labels":{"kubernetes.io/legacy-token-invalid-since":"2026-06-01"}}}`
	for name, tc := range map[string]struct {
		tokens     []token
		plans, why string
	}{
		"nothing": {nil, "", "there is nothing to retire"},
		"an unused one is marked, one long invalid deleted": {[]token{{secret: secret("a", "", ""), account: lists}, {secret: secret("b", "", "2024-01-01"), account: lists}},
			marking + ", delete Secret b unchanged",
			"2 generated tokens are unused for the clean-up period: marking 1, deleting 1, keeping 0"},
		"one that a pod refers to stays": {[]token{{secret: secret("a", "", ""), inUse: true}}, "",
			"1 generated tokens are unused for the clean-up period: marking 0, deleting 0, keeping 1"},
		"one whose account is not known is waited for, the others are not": {[]token{{secret: secret("b", "", ""), unknown: unknown}, {secret: secret("a", "", ""), account: lists}},
			"wait for Secret b, " + marking,
			"2 generated tokens are unused for the clean-up period: marking 1, deleting 0, keeping 1"},
		"one whose account is gone by now stays": {[]token{{secret: secret("a", "", "2024-01-01")}}, "",
			"1 generated tokens are unused for the clean-up period: marking 0, deleting 0, keeping 1"},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(observed{unused: year, tokens: tc.tokens}, noon)
			if got := fixture.Planned(p); got != tc.plans || p.Why != tc.why || p.RequeueAfter != 0 || (len(p.Stages) > 0) != (got != "") {
				t.Errorf("plans %q in %d stages because %q", got, len(p.Stages), p.Why)
			}
		})
	}
}

func TestOnlyWhatWasRetiredIsLogged(t *testing.T) {
	done, gone := &corev1.Secret{}, &corev1.Secret{}
	got := retiredBy(act.Results{
		{Step: act.Patch{Of: done}, Became: act.Done}, {Step: act.Delete{Of: gone}, Became: act.WasGone},
		{Step: act.Delete{Of: gone}, Became: act.Refused},
	})
	if len(got) != 1 || got[0] != (retiredToken{mark, done}) {
		t.Errorf("logs %v", got)
	}
}
