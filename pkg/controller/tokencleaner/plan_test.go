package tokencleaner

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

func token(expiration string) *corev1.Secret {
	s := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef", Namespace: "kube-system", UID: "u-1", ResourceVersion: "5"},
		Type:       "bootstrap.kubernetes.io/token",
	}
	if expiration != "" {
		s.Data = map[string][]byte{"expiration": []byte(expiration)}
	}
	return s
}

func TestPlan(t *testing.T) {
	leaving := token("2001-01-01T00:00:00Z")
	leaving.DeletionTimestamp = &metav1.Time{}
	const unreadable, deletion = "malformed bootstrap token: its expiration is not a time as in RFC 3339", "delete Secret bootstrap-token-abcdef unchanged"
	for name, tc := range map[string]struct {
		secret     *corev1.Secret
		wants, why string
		again      time.Duration
	}{
		"a token without an expiration stays":  {token(""), "", "it never expires", 0},
		"a token stays until it expires":       {token("2026-06-01T12:00:05Z"), "", "it expires in 5s", 5 * time.Second},
		"a token goes in the moment it says":   {token("2026-06-01T12:00:00Z"), deletion, "it has expired", 0},
		"a token that expired long ago goes":   {token("2001-01-01T00:00:00+02:00"), deletion, "it has expired", 0},
		"an expiration that is a word is over": {token("soon"), deletion, unreadable, 0},
		"a token that goes is left alone":      {leaving, "", "it is being deleted", 0},
	} {
		t.Run(name, func(t *testing.T) {
			if p := plan(tc.secret, noon); fixture.Planned(p) != tc.wants || p.Why != tc.why || p.RequeueAfter != tc.again {
				t.Errorf("wants %q because %q, again after %s", fixture.Planned(p), p.Why, p.RequeueAfter)
			}
		})
	}
}
