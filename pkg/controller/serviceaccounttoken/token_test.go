package serviceaccounttoken

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gopkg.in/go-jose/go-jose.v2/jwt"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

var rsaKey = must(rsa.GenerateKey(rand.Reader, 2048))

func account(name, uid string) *corev1.ServiceAccount {
	a := &corev1.ServiceAccount{}
	a.Namespace, a.Name = "team", name
	a.UID = types.UID("uid-" + uid)
	return a
}

// The API server reads tokens with the older major version of the library, so
// that is what the test reads them with.
func TestATokenIsWhatTheAPIServerReads(t *testing.T) {
	for name, tc := range map[string]struct {
		key       crypto.Signer
		algorithm string
	}{
		"RSA":         {rsaKey, "RS256"},
		"ECDSA P-256": {must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)), "ES256"},
		"ECDSA P-384": {must(ecdsa.GenerateKey(elliptic.P384(), rand.Reader)), "ES384"},
		"ECDSA P-521": {must(ecdsa.GenerateKey(elliptic.P521(), rand.Reader)), "ES512"},
	} {
		t.Run(name, func(t *testing.T) {
			i, err := newIssuer(tc.key)
			if err != nil {
				t.Fatal(err)
			}
			signed, err := i.token(account("builder", "1"), "builder-token")
			if err != nil {
				t.Fatal(err)
			}
			parsed, err := jwt.ParseSigned(signed)
			if err != nil {
				t.Fatal(err)
			}
			claims := map[string]any{}
			if err := parsed.Claims(tc.key.Public(), &claims); err != nil {
				t.Fatal(err)
			}
			want := map[string]any{
				"iss":                                    "kubernetes/serviceaccount",
				"sub":                                    "system:serviceaccount:team:builder",
				"kubernetes.io/serviceaccount/namespace": "team",
				"kubernetes.io/serviceaccount/secret.name":          "builder-token",
				"kubernetes.io/serviceaccount/service-account.name": "builder",
				"kubernetes.io/serviceaccount/service-account.uid":  "uid-1",
			}
			if diff := cmp.Diff(want, claims); diff != "" {
				t.Error(diff)
			}
			sum := sha256.Sum256(must(x509.MarshalPKIXPublicKey(tc.key.Public())))
			header := parsed.Headers[0]
			if header.KeyID != base64.RawURLEncoding.EncodeToString(sum[:]) || header.Algorithm != tc.algorithm {
				t.Errorf("header names key %s and algorithm %s", header.KeyID, header.Algorithm)
			}
			other := must(rsa.GenerateKey(rand.Reader, 2048))
			if err := parsed.Claims(other.Public(), &claims); err == nil {
				t.Error("the token passes with another key")
			}
		})
	}
}

func TestKeysThatCannotSignTokensAreRefused(t *testing.T) {
	_, edwards := must2(ed25519.GenerateKey(rand.Reader))
	for name, tc := range map[string]struct {
		key  crypto.Signer
		want string
	}{
		"no key":            {nil, "a private key is needed"},
		"an Ed25519 key":    {edwards, "unknown private key type ed25519.PrivateKey"},
		"a curve too short": {must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader)), "unknown private key curve"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := newIssuer(tc.key); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func must2[A, B any](a A, b B, err error) (A, B) {
	if err != nil {
		panic(err)
	}
	return a, b
}

func pemOf(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func TestLoadKey(t *testing.T) {
	ec := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	_, ed := must2(ed25519.GenerateKey(rand.Reader))
	for name, tc := range map[string]struct {
		content []byte
		want    crypto.Signer
		fails   string
	}{
		"RSA in PKCS#1":           {content: pemOf("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey)), want: rsaKey},
		"RSA in PKCS#8":           {content: pemOf("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(rsaKey))), want: rsaKey},
		"ECDSA":                   {content: pemOf("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(ec))), want: ec},
		"Ed25519 signs no token":  {content: pemOf("PRIVATE KEY", must(x509.MarshalPKCS8PrivateKey(ed))), fails: "unknown private key type ed25519.PrivateKey"},
		"nor does another curve":  {content: pemOf("EC PRIVATE KEY", must(x509.MarshalECPrivateKey(must(ecdsa.GenerateKey(elliptic.P224(), rand.Reader))))), fails: "unknown private key curve"},
		"a certificate is no key": {content: pemOf("CERTIFICATE", []byte("x")), fails: "data does not contain a valid RSA or ECDSA private key"},
		"an empty file":           {content: []byte{}, fails: "data does not contain a valid RSA or ECDSA private key"},
		"a file that is missing":  {fails: "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "sa.key")
			if tc.content != nil {
				if err := os.WriteFile(file, tc.content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := LoadKey(file)
			if tc.fails != "" {
				for _, part := range []string{"error reading key for service account token controller: ", file, tc.fails, "--service-account-private-key-file"} {
					if err == nil || !strings.Contains(err.Error(), part) {
						t.Errorf("error %v does not say %q", err, part)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !tc.want.Public().(interface{ Equal(crypto.PublicKey) bool }).Equal(got.Public()) {
				t.Error("another key was read")
			}
		})
	}
}

func TestLoadRootCA(t *testing.T) {
	certificate := selfSigned(t)
	for name, tc := range map[string]struct {
		content []byte
		fails   string
	}{
		"a certificate":                     {content: certificate},
		"a bundle with text around it":      {content: append([]byte("our CA\n"), append(certificate, certificate...)...)},
		"an empty file":                     {content: []byte{}, fails: "data does not contain any valid RSA or ECDSA certificates"},
		"a key is no certificate":           {content: pemOf("PRIVATE KEY", []byte("x")), fails: "data does not contain any valid RSA or ECDSA certificates"},
		"a certificate that does not parse": {content: pemOf("CERTIFICATE", []byte("x")), fails: "x509"},
		"a file that is missing":            {fails: "no such file or directory"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ca.crt")
			if tc.content != nil {
				if err := os.WriteFile(file, tc.content, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := LoadRootCA(file)
			if tc.fails == "" {
				if err != nil || !cmp.Equal(got, tc.content) {
					t.Errorf("got %q and %v", got, err)
				}
				return
			}
			if err == nil || !strings.HasPrefix(err.Error(), "error parsing root-ca-file at "+file+": ") || !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("got error %v, want %q", err, tc.fails)
			}
		})
	}
}
