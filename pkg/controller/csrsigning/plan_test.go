package csrsigning

import (
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
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
		do := decide(request(t, tc.signer, tc.words, tc.usages, approved), tc.signer)
		if do.Fail != tc.fail || do.Sign != (tc.fail == "") || do.broken != nil {
			t.Errorf("%s, %q for %q: got %+v, want %q", tc.signer, tc.words, tc.usages, do, tc.fail)
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
	}{
		"approved":                            {request(t, apiClient, "CN=jane", plainClient, approved), "sign"},
		"gone":                                {nil, "nothing"},
		"nobody has judged it":                {request(t, apiClient, "CN=jane", plainClient), "nothing"},
		"denied":                              {request(t, apiClient, "CN=jane", plainClient, denied), "nothing"},
		"denied and failed":                   {request(t, apiClient, "CN=jane", plainClient, denied, failed), "nothing"},
		"denied after it was approved":        {request(t, apiClient, "CN=jane", plainClient, approved, denied), "nothing"},
		"failed already":                      {request(t, apiClient, "CN=jane", "any", approved, failed), "nothing"},
		"it has its certificate":              {issued, "nothing"},
		"for another signer of ours":          {request(t, kubelet, "CN=jane", plainClient, approved), "nothing"},
		"for a signer that is not ours":       {request(t, "example.com/signer", "CN=jane", plainClient, approved), "nothing"},
		"for a signer with a name like ours":  {request(t, apiClient+"x", "CN=jane", plainClient, approved), "nothing"},
		"it cannot be read":                   {unreadable, "broken"},
		"it breaks the rules":                 {request(t, apiClient, "CN=jane", "any", approved), "fail"},
		"a condition that nobody here knows":  {request(t, apiClient, "CN=jane", plainClient, "Other"), "nothing"},
		"approved, with one of those as well": {request(t, apiClient, "CN=jane", plainClient, "Other", approved), "sign"},
	} {
		t.Run(name, func(t *testing.T) {
			do := decide(tc.csr, apiClient)
			got := "nothing"
			switch {
			case do.broken != nil:
				got = "broken"
			case do.Fail != "":
				got = "fail"
			case do.Sign:
				got = "sign"
			}
			if got != tc.want || do.Why == "" {
				t.Errorf("got %s because %s, want %s", got, do.Why, tc.want)
			}
		})
	}
}
