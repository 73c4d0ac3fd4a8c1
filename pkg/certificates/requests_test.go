package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/test/certs"
)

const (
	node    = "O=system:nodes CN=system:node:a "
	client  = "digital signature,key encipherment,client auth"
	serving = "digital signature,key encipherment,server auth"
)

func parsed(t testing.TB, words string) *x509.CertificateRequest {
	t.Helper()
	text, err := certs.Request(words)
	if err != nil {
		t.Fatal(err)
	}
	request, err := ParseRequest(text)
	if err != nil {
		t.Fatal(err)
	}
	return request
}

func usages(list string) []certificatesv1.KeyUsage {
	var all []certificatesv1.KeyUsage
	for usage := range strings.SplitSeq(list, ",") {
		all = append(all, certificatesv1.KeyUsage(usage))
	}
	return all
}

// TestKubeletRules has the answers of the reference, also where several rules are broken.
func TestKubeletRules(t *testing.T) {
	const wrongClient = "usages did not match [client auth digital signature key encipherment]"
	const wrongServing = "usages did not match [digital signature key encipherment server auth]"
	type rules = func(*x509.CertificateRequest, []certificatesv1.KeyUsage) string
	for _, tc := range []struct {
		kind          rules
		words, usages string
		want          string
	}{
		{KubeletClientProblem, node, client, ""},
		{KubeletClientProblem, node, "client auth,key encipherment,digital signature,client auth", ""},
		{KubeletClientProblem, node, "digital signature,client auth", ""},
		{KubeletClientProblem, "O=system:nodes CN=system:node:", client, ""},
		{KubeletClientProblem, node, "client auth", wrongClient},
		{KubeletClientProblem, node, "signing,client auth", wrongClient},
		{KubeletClientProblem, node, client + ",server auth", wrongClient},
		{KubeletClientProblem, node, serving, wrongClient},
		{KubeletClientProblem, node, "", wrongClient},
		{KubeletClientProblem, node + "DNS=a IP=10.0.0.1 EMAIL=a@b URI=spiffe://a", "any", hasDNSNames},
		{KubeletClientProblem, node + "IP=10.0.0.1 EMAIL=a@b URI=spiffe://a", "any", hasEmails},
		{KubeletClientProblem, node + "IP=10.0.0.1 URI=spiffe://a", "any", hasIPAddresses},
		{KubeletClientProblem, node + "URI=spiffe://a", "any", hasURIs},
		{KubeletClientProblem, "O=system:nodes CN=x", "any", wrongCommonName},
		{KubeletClientProblem, "O=system:nodes CN=System:node:a", client, wrongCommonName},
		{KubeletClientProblem, "O=system:nodes", client, wrongCommonName},
		{KubeletClientProblem, "O=x CN=x DNS=a", client, wrongOrganization},
		{KubeletClientProblem, "O=system:nodes O=system:masters CN=system:node:a", client, wrongOrganization},
		{KubeletClientProblem, "OU=system:nodes CN=system:node:a", client, wrongOrganization},
		{KubeletServingProblem, node + "DNS=a IP=10.0.0.1", serving, ""},
		{KubeletServingProblem, node + "IP=::1", serving, ""},
		{KubeletServingProblem, node + "DNS=a", "digital signature,server auth", ""},
		{KubeletServingProblem, node + "DNS=a", "server auth", wrongServing},
		{KubeletServingProblem, node + "DNS=a", serving + ",client auth", wrongServing},
		{KubeletServingProblem, node, serving, noAddress},
		{KubeletServingProblem, node + "URI=spiffe://a EMAIL=a@b", serving, noAddress},
		{KubeletServingProblem, node + "DNS=a URI=spiffe://a EMAIL=a@b", serving, hasEmails},
		{KubeletServingProblem, node + "DNS=a URI=spiffe://a", serving, hasURIs},
		{KubeletServingProblem, "O=x CN=y", "any", wrongOrganization},
		{KubeletServingProblem, "O=system:nodes CN=y DNS=a", "any", wrongServing},
		{KubeletServingProblem, "O=system:nodes CN=y DNS=a", serving, wrongCommonName},
		{KubeletServingProblem, "CN=system:node:a DNS=a", serving, wrongOrganization},
		{KubeletServingProblem, "O=system:nodes O=other CN=system:node:a DNS=a", serving, wrongOrganization},
	} {
		if got := tc.kind(parsed(t, tc.words), usages(tc.usages)); got != tc.want {
			t.Errorf("%q for %q: got %q, want %q", tc.words, tc.usages, got, tc.want)
		}
	}
}

func TestParseRequestRefusesWhatIsNoRequest(t *testing.T) {
	good, err := certs.Request("CN=a")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(good)
	for name, text := range map[string][]byte{
		"nothing":                 nil,
		"no PEM":                  []byte("neither"),
		"a certificate":           pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: block.Bytes}),
		"an older word":           pem.EncodeToMemory(&pem.Block{Type: "NEW CERTIFICATE REQUEST", Bytes: block.Bytes}),
		"an empty block":          pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST"}),
		"half a request":          pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: block.Bytes[:40]}),
		"a request and a half":    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: append(block.Bytes, 1, 2)}),
		"a block without its end": good[:len(good)-20],
	} {
		t.Run(name, func(t *testing.T) {
			if request, err := ParseRequest(text); err == nil {
				t.Errorf("read as %v", request.Subject)
			}
		})
	}
}

// FuzzParseRequest looks for requests on which a rule panics.
func FuzzParseRequest(f *testing.F) {
	for _, words := range []string{"CN=a", node + "DNS=a IP=10.0.0.1 EMAIL=a@b URI=spiffe://a", "CN=a BROKEN=signature", "CA=true EXT=1.2.3"} {
		text, err := certs.Request(words)
		if err != nil {
			f.Fatal(err)
		}
		block, _ := pem.Decode(text)
		f.Add(block.Bytes)
	}
	f.Add([]byte{0x30, 0x80})
	f.Fuzz(func(_ *testing.T, der []byte) {
		request, err := ParseRequest(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
		if err != nil {
			return
		}
		_ = KubeletClientProblem(request, nil)
		_ = KubeletServingProblem(request, usages(serving))
		_ = request.CheckSignature()
	})
}

// FuzzParseRequestText looks for texts that are read although they are no PEM of a request.
func FuzzParseRequestText(f *testing.F) {
	good, err := certs.Request("CN=a")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte("-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		if request, err := ParseRequest(text); (request == nil) == (err == nil) {
			t.Errorf("read %v with error %v", request, err)
		}
	})
}

func TestConditions(t *testing.T) {
	const approved, denied, failed = certificatesv1.CertificateApproved, certificatesv1.CertificateDenied, certificatesv1.CertificateFailed
	for name, tc := range map[string]struct {
		conditions                []certificatesv1.RequestConditionType
		status                    corev1.ConditionStatus
		approved, decided, failed bool
	}{
		"nobody has looked at it":            {nil, "True", false, false, false},
		"approved":                           {[]certificatesv1.RequestConditionType{approved}, "True", true, true, false},
		"denied":                             {[]certificatesv1.RequestConditionType{denied}, "True", false, true, false},
		"approved and denied":                {[]certificatesv1.RequestConditionType{approved, denied}, "True", false, true, false},
		"approved and failed":                {[]certificatesv1.RequestConditionType{approved, failed}, "True", true, true, true},
		"failed alone":                       {[]certificatesv1.RequestConditionType{failed}, "True", false, false, true},
		"a failure that is not true":         {[]certificatesv1.RequestConditionType{failed}, "False", false, false, false},
		"a failure from before statuses":     {[]certificatesv1.RequestConditionType{failed}, "", false, false, true},
		"a condition that nobody here knows": {[]certificatesv1.RequestConditionType{"Other"}, "True", false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			csr := &certificatesv1.CertificateSigningRequest{}
			for _, kind := range tc.conditions {
				csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{Type: kind, Status: tc.status})
			}
			if Approved(csr) != tc.approved || Decided(csr) != tc.decided || Failed(csr) != tc.failed {
				t.Errorf("approved %t, decided %t, failed %t", Approved(csr), Decided(csr), Failed(csr))
			}
		})
	}
}

func TestRetriesGrowToAThousandSeconds(t *testing.T) {
	retries := Retries()
	for i, want := range []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, 1600 * time.Millisecond} {
		if got := retries.When("a"); got != want {
			t.Errorf("retry %d after %s, want %s", i, got, want)
		}
	}
	for range 12 {
		retries.When("a")
	}
	if got := retries.When("a"); got != 1000*time.Second {
		t.Errorf("the longest pause is %s", got)
	}
	if got := retries.When("b"); got != 200*time.Millisecond {
		t.Errorf("another key waits %s", got)
	}
}
