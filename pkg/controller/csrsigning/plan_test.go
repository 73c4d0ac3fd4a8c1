package csrsigning

import (
	"errors"
	"fmt"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// TestRulesOfSigners has the answers of the reference.
func TestRulesOfSigners(t *testing.T) {
	for _, tc := range []struct{ signer, words, usages, fail string }{
		{serving, node + "DNS=a IP=10.0.0.1", servingUse, ""},
		{serving, node, servingUse, "DNS or IP subjectAltName is required"},
		{serving, node + "DNS=a EMAIL=a@b", servingUse, "Email subjectAltNames are not allowed"},
		{serving, node + "DNS=a URI=spiffe://a", servingUse, "URI subjectAltNames are not allowed"},
		{serving, node + "DNS=a", clientUse, "usages did not match [digital signature key encipherment server auth]"},
		{serving, "O=system:nodes CN=y DNS=a", servingUse, "subject common name does not begin with system:node:"},
		{serving, "O=x CN=y", "any", "subject organization is not system:nodes"},
		{kubelet, node, clientUse, ""},
		{kubelet, node, "digital signature,client auth", ""},
		{kubelet, node, servingUse, "usages did not match [client auth digital signature key encipherment]"},
		{kubelet, node + "DNS=a", clientUse, "DNS subjectAltNames are not allowed"},
		{kubelet, node + "IP=10.0.0.1", clientUse, "IP subjectAltNames are not allowed"},
		{kubelet, "CN=system:node:a", clientUse, "subject organization is not system:nodes"},
		{apiClient, "CN=jane O=devs DNS=a EMAIL=a@b URI=spiffe://a IP=10.0.0.1 EXT=1.2.3.4 CA=true", plainClient, ""},
		{apiClient, "CN=jane", "client auth,digital signature,key encipherment", ""},
		{apiClient, "CN=jane", "client auth,server auth", "invalid usage for client certificate: server auth"},
		{apiClient, "CN=jane", "server auth,cert sign", "invalid usage for client certificate: server auth"},
		{apiClient, "CN=jane", "digital signature,cert sign,client auth", "invalid usage for client certificate: cert sign"},
		{apiClient, "CN=jane", "any", "invalid usage for client certificate: any"},
		{apiClient, "CN=jane", "digital signature", "missing required usage for client certificate: client auth"},
		{LegacyUnknown, "CN=jane CA=true", "any,cert sign", ""},
		{LegacyUnknown, "", "server auth", ""},
	} {
		got := written(t, planned(request(t, tc.signer, tc.words, tc.usages, approved), tc.signer))
		want := "sign"
		if tc.fail != "" {
			want = "fail: " + tc.fail
		}
		if got != want {
			t.Errorf("%s, %q for %q: got %s, want %s", tc.signer, tc.words, tc.usages, got, want)
		}
	}
}

func TestOnlyWaitingRequestsAreActedOn(t *testing.T) {
	issued := request(t, apiClient, "CN=jane", plainClient, approved)
	issued.Status.Certificate = []byte("certificate")
	unreadable := request(t, apiClient, "CN=jane", plainClient, approved)
	unreadable.Spec.Request = []byte("x")
	for name, tc := range map[string]struct {
		csr  *certificatesv1.CertificateSigningRequest
		want string
		why  string
	}{
		"approved":                            {request(t, apiClient, "CN=jane", plainClient, approved), "sign", "it is approved and fulfils the rules of its signer: signing it"},
		"nobody has judged it":                {request(t, apiClient, "CN=jane", plainClient), "nothing", "it waits to be approved"},
		"denied":                              {request(t, apiClient, "CN=jane", plainClient, denied), "nothing", "it is complete: it was denied"},
		"denied and failed":                   {request(t, apiClient, "CN=jane", plainClient, denied, failed), "nothing", "it is complete: it was refused for good"},
		"denied after it was approved":        {request(t, apiClient, "CN=jane", plainClient, approved, denied), "nothing", "it is complete: it was denied"},
		"failed already":                      {request(t, apiClient, "CN=jane", "any", approved, failed), "nothing", "it is complete: it was refused for good"},
		"it has its certificate":              {issued, "nothing", "it is complete: it has its certificate"},
		"for another signer of ours":          {request(t, kubelet, "CN=jane", plainClient, approved), "nothing", "it is for another signer"},
		"for a signer that is not ours":       {request(t, "example.com/signer", "CN=jane", plainClient, approved), "nothing", "it is for another signer"},
		"for a signer with a name like ours":  {request(t, apiClient+"x", "CN=jane", plainClient, approved), "nothing", "it is for another signer"},
		"it cannot be read":                   {unreadable, "broken", "it cannot be read"},
		"it breaks the rules":                 {request(t, apiClient, "CN=jane", "any", approved), "fail: invalid usage for client certificate: any", "it breaks a rule of its signer: invalid usage for client certificate: any"},
		"a condition that nobody here knows":  {request(t, apiClient, "CN=jane", plainClient, "Other"), "nothing", "it waits to be approved"},
		"approved, with one of those as well": {request(t, apiClient, "CN=jane", plainClient, "Other", approved), "sign", "it is approved and fulfils the rules of its signer: signing it"},
	} {
		t.Run(name, func(t *testing.T) {
			p := planned(tc.csr, apiClient)
			if got := written(t, p); got != tc.want || p.Why != tc.why {
				t.Errorf("got %s because %s, want %s because %s", got, p.Why, tc.want, tc.why)
			}
		})
	}
}

func TestWhatCouldNotBeSigned(t *testing.T) {
	csr := request(t, apiClient, "CN=jane", plainClient, approved)
	for name, tc := range map[string]struct {
		unsigned error
		never    bool
	}{
		"for a reason that may pass is tried again": {errors.New("the authority has expired"), false},
		"and never will be is given up":             {fmt.Errorf("%w: its signature is wrong", errRequest), true},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(observed{csr: csr, inspection: inspect(csr, apiClient), unsigned: tc.unsigned}, noon)
			if len(p.Stages) > 0 || p.Why == "" || errors.Is(p.Terminal, tc.unsigned) != tc.never || errors.Is(p.Err, tc.unsigned) == tc.never {
				t.Errorf("got %v, terminal %v, because %s", p.Err, p.Terminal, p.Why)
			}
		})
	}
}

// planned is what a signer plans that could sign the request, if it is to be signed.
func planned(csr *certificatesv1.CertificateSigningRequest, signer string) act.Plan {
	o := observed{csr: csr, inspection: inspect(csr, signer)}
	if o.request != nil {
		o.certificate = []byte("certificate")
	}
	return plan(o, noon)
}

// written is what a plan does to the status of a request.
func written(t *testing.T, p act.Plan) string {
	t.Helper()
	switch {
	case p.Terminal != nil:
		return "broken"
	case len(p.Stages) == 0:
		return "nothing"
	}
	update, is := p.Stages[0].Steps[0].(act.Update)
	if !is || len(p.Stages)+len(p.Stages[0].Steps) != 2 || update.Subresource != "status" {
		t.Fatalf("plans %s", fixture.Planned(p))
	}
	csr := update.Object.(*certificatesv1.CertificateSigningRequest)
	if last := csr.Status.Conditions[len(csr.Status.Conditions)-1]; last.Type == failed && len(csr.Status.Certificate) == 0 {
		return "fail: " + last.Message
	}
	if string(csr.Status.Certificate) != "certificate" {
		t.Errorf("puts the status %v", csr.Status)
	}
	return "sign"
}
