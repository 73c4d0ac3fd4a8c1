package compare

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestTextThatDiffersBetweenTwoRunsIsLevelled(t *testing.T) {
	l := newLeveller("story-0001", map[string]string{"web-5d4f8-x7k2p": "web-5d4f8-", "story-0001-b8c9d": "story-0001-"})
	for name, c := range map[string]struct{ in, want string }{
		"the namespace":                      {"pods in story-0001", "pods in $NS"},
		"a generated name":                   {"Created pod: web-5d4f8-x7k2p", "Created pod: web-5d4f8-*"},
		"a name made of a known prefix":      {`pods "web-5d4f8-zzzz2" is forbidden`, `pods "web-5d4f8-*" is forbidden`},
		"a prefix that holds the namespace":  {"story-0001-b8c9d", "$NS-*"},
		"a hash is no chance":                {"web-5d4f8", "web-5d4f8"},
		"a word with vowels is not made":     {"web-5d4f8-north", "web-5d4f8-north"},
		"a UID":                              {"uid 0a1b2c3d-1111-2222-3333-444455556666.", "uid <uid>."},
		"a time":                             {"at 2026-01-02T03:04:05Z and 2026-01-02T03:04:05.123456Z", "at <time> and <time micro>"},
		"a time of another form":             {"2026-01-02T03:04:05.123456789+01:00", "<time fraction zone>"},
		"an address of a pod":                {"10.244.1.17:80", "<pod-ip>:80"},
		"an address of a service":            {"10.96.3.4", "<service-ip>"},
		"an address that the story has made": {"10.9.0.9", "10.9.0.9"},
		"a certificate":                      {"-----BEGIN CERTIFICATE-----\nabc\n-----END CERTIFICATE-----\n", "<pem>"},
		"autoscalers in any order":           {"controlled by multiple HPAs: [story-0001/two story-0001/one], again", "controlled by multiple HPAs: [$NS/one $NS/two], again"},
		"the token volume":                   {"kube-api-access-b7c2d", "kube-api-access-*"},
	} {
		if got := l.text(c.in); got != c.want {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}

func TestObjectsAreLevelled(t *testing.T) {
	l := newLeveller("story-0001", nil)
	in := map[string]any{
		"kind": "Deployment", "apiVersion": "apps/v1",
		"metadata": map[string]any{"name": "web", "namespace": "story-0001", "uid": "u", "resourceVersion": "7", "generation": 2.0},
		"status": map[string]any{
			"observedGeneration": 2.0,
			"conditions":         []any{map[string]any{"type": "Progressing"}, map[string]any{"type": "Available"}},
		},
	}
	want := map[string]any{
		"kind": "Deployment", "apiVersion": "apps/v1",
		"metadata": map[string]any{"name": "web", "namespace": "$NS"},
		"status": map[string]any{
			"observedGeneration": "<current>",
			"conditions":         []any{map[string]any{"type": "Available"}, map[string]any{"type": "Progressing"}},
		},
	}
	if diff := cmp.Diff(want, l.object(in)); diff != "" {
		t.Error(diff)
	}
	if in["metadata"].(map[string]any)["uid"] != "u" {
		t.Error("the original was changed")
	}
}

func TestAnObjectIsNamedForAReader(t *testing.T) {
	l := newLeveller("story-0001", map[string]string{"web-bcdfg": "web-"})
	for want, o := range map[string]map[string]any{
		"Pod web-*":            {"kind": "Pod", "apiVersion": "v1", "metadata": map[string]any{"name": "web-bcdfg", "namespace": "story-0001"}},
		"Pod $NS-a/p":          {"kind": "Pod", "apiVersion": "v1", "metadata": map[string]any{"name": "p", "namespace": "story-0001-a"}},
		"Node n":               {"kind": "Node", "apiVersion": "v1", "metadata": map[string]any{"name": "n"}},
		"EndpointSlice.disc s": {"kind": "EndpointSlice", "apiVersion": "disc.k8s.io/v1", "metadata": map[string]any{"name": "s", "namespace": "story-0001"}},
	} {
		if got := l.identity(o); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestCertificatesAreLevelledToWhatTheyHold(t *testing.T) {
	// Two that differ in their moments and serial numbers only.
	first, second := selfSigned(t, 1), selfSigned(t, 2)
	l := newLeveller("ns", nil)
	a, b := l.value("certificate", first), l.value("certificate", second)
	held, ok := a.(map[string]any)
	if !ok || held["subject"] != "CN=a" || held["lifetime"] != "1h0m0s" {
		t.Errorf("levelled to %v", a)
	}
	if encode(a) != encode(b) || first == second {
		t.Errorf("%v and %v differ", a, b)
	}
	if got := l.value("certificate", certificatePEM+"AAAA"); got != certificatePEM+"AAAA" {
		t.Errorf("a broken certificate is levelled to %v", got)
	}
}

// selfSigned returns a certificate, encoded as in a status.
func selfSigned(t *testing.T, serial int64) string {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Unix(1e9*serial, 0)
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "a"}, NotBefore: begin, NotAfter: begin.Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
