package tokencleaner

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

func TestDecide(t *testing.T) {
	leaving := token("2001-01-01T00:00:00Z")
	leaving.DeletionTimestamp = &metav1.Time{}
	const unreadable = "malformed bootstrap token: its expiration is not a time as in RFC 3339"
	for name, tc := range map[string]struct {
		secret *corev1.Secret
		want   plan
	}{
		"a token without an expiration stays":  {token(""), plan{Why: "it never expires"}},
		"a token stays until it expires":       {token("2026-06-01T12:00:05Z"), plan{Again: 5 * time.Second, Why: "it has not expired yet"}},
		"a token goes in the moment it says":   {token("2026-06-01T12:00:00Z"), plan{Delete: true, Why: "it has expired"}},
		"a token that expired long ago goes":   {token("2001-01-01T00:00:00+02:00"), plan{Delete: true, Why: "it has expired"}},
		"an expiration that is a word is over": {token("soon"), plan{Delete: true, Why: unreadable}},
		"a token that goes is left alone":      {leaving, plan{Why: "it is being deleted"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, decide(tc.secret, noon)); diff != "" {
				t.Error(diff)
			}
		})
	}
}
