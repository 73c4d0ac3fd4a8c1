package serviceaccounttoken

import (
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func selfSigned(t *testing.T) []byte {
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, rsaKey.Public(), rsaKey)
	if err != nil {
		t.Fatal(err)
	}
	return pemOf("CERTIFICATE", der)
}

var ca = []byte("the CA")

// secret is a complete token secret of account builder with UID uid-1.
func secret(change func(*corev1.Secret)) *corev1.Secret {
	s := &corev1.Secret{Type: corev1.SecretTypeServiceAccountToken, Data: map[string][]byte{
		"ca.crt": ca, "namespace": []byte("team"), "token": []byte("signed"),
	}}
	s.Namespace, s.Name, s.UID, s.ResourceVersion = "team", "builder-token", "s-1", "5"
	s.Annotations = map[string]string{
		"kubernetes.io/service-account.name": "builder", "kubernetes.io/service-account.uid": "uid-1",
	}
	if change != nil {
		change(s)
	}
	return s
}

func empty(s *corev1.Secret) {
	s.Data = nil
	delete(s.Annotations, "kubernetes.io/service-account.uid")
}

func tokenless(s *corev1.Secret) { s.Data = nil }

func TestLacking(t *testing.T) {
	for name, tc := range map[string]struct {
		secret *corev1.Secret
		ca     []byte
		want   lack
	}{
		"a complete secret lacks nothing":       {secret(nil), ca, lack{}},
		"a new secret lacks all":                {secret(empty), ca, lack{RootCA: true, Namespace: true, Token: true}},
		"another root CA is replaced":           {secret(func(s *corev1.Secret) { s.Data["ca.crt"] = []byte("old") }), ca, lack{RootCA: true}},
		"without a configured CA any CA stays":  {secret(func(s *corev1.Secret) { s.Data["ca.crt"] = []byte("old") }), nil, lack{}},
		"without a configured CA none is added": {secret(empty), nil, lack{Namespace: true, Token: true}},
		"an empty namespace is filled":          {secret(func(s *corev1.Secret) { s.Data["namespace"] = nil }), ca, lack{Namespace: true}},
		"a namespace in other words stays":      {secret(func(s *corev1.Secret) { s.Data["namespace"] = []byte("x") }), ca, lack{}},
		"a removed token is signed again":       {secret(func(s *corev1.Secret) { delete(s.Data, "token") }), ca, lack{Token: true}},
		"a removed UID annotation alone is no reason to write": {
			secret(func(s *corev1.Secret) { delete(s.Annotations, "kubernetes.io/service-account.uid") }), ca, lack{}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := lacking(tc.secret, tc.ca); got != tc.want {
				t.Errorf("got %+v, want %+v", got, tc.want)
			}
		})
	}
}

func TestFilled(t *testing.T) {
	for name, tc := range map[string]struct {
		secret  *corev1.Secret
		missing lack
		want    *corev1.Secret
	}{
		"everything is filled in": {secret(empty), lack{RootCA: true, Namespace: true, Token: true}, secret(nil)},
		"what is there stays": {
			secret(func(s *corev1.Secret) {
				s.Data["extra"], s.Data["ca.crt"], s.Annotations["more"] = []byte("e"), nil, "m"
			}), lack{RootCA: true},
			secret(func(s *corev1.Secret) { s.Data["extra"], s.Annotations["more"] = []byte("e"), "m" })},
		"the UID annotation comes with any other write": {
			secret(func(s *corev1.Secret) {
				delete(s.Annotations, "kubernetes.io/service-account.uid")
				delete(s.Data, "token")
			}),
			lack{Token: true}, secret(nil)},
	} {
		t.Run(name, func(t *testing.T) {
			before := tc.secret.DeepCopy()
			if diff := cmp.Diff(tc.want, filled(tc.secret, account("builder", "1"), tc.missing, ca, "signed")); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before, tc.secret); diff != "" {
				t.Errorf("the cached object was changed: %s", diff)
			}
		})
	}
}

func TestIsToken(t *testing.T) {
	for name, tc := range map[string]struct {
		secret *corev1.Secret
		want   bool
	}{
		"a token":                       {secret(nil), true},
		"a secret of another type":      {secret(func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque }), false},
		"a token of no service account": {secret(func(s *corev1.Secret) { s.Annotations = nil }), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isToken(tc.secret); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestBelongs(t *testing.T) {
	for name, tc := range map[string]struct {
		secret  *corev1.Secret
		account *corev1.ServiceAccount
		want    bool
	}{
		"name and UID agree":                      {secret(nil), account("builder", "1"), true},
		"a new account of the name is another":    {secret(nil), account("builder", "2"), false},
		"another name is another account":         {secret(nil), account("deployer", "1"), false},
		"without a UID the name decides":          {secret(empty), account("builder", "2"), true},
		"the same name elsewhere is not the same": {secret(func(s *corev1.Secret) { s.Namespace = "other" }), account("builder", "1"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := belongs(tc.secret, tc.account); got != tc.want {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestWithout(t *testing.T) {
	given := listing()
	got := without(given, "builder-token")
	if diff := cmp.Diff([]corev1.ObjectReference{{Name: "other"}}, got.Secrets); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(listing(), given); diff != "" {
		t.Errorf("the cached object was changed: %s", diff)
	}
	if refers(got, "builder-token") || !refers(given, "builder-token") {
		t.Error("refers does not agree")
	}
}
