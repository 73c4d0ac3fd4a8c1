package csrsigning

import (
	"crypto/x509"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
)

// LegacyUnknown is the signer of requests made before there were signers.
const LegacyUnknown = "kubernetes.io/legacy-unknown"

const failedReason = "SignerValidationFailure"

// plan says what becomes of a request.
type plan struct {
	Sign bool   `json:"sign,omitempty"`
	Fail string `json:"fail,omitempty"`
	Why  string `json:"why"`

	request *x509.CertificateRequest
	// broken is the error of a request that cannot be read.
	broken error
}

// waiting tells whether the request is one that this signer has to act on.
func waiting(csr *certificatesv1.CertificateSigningRequest, signer string) bool {
	return csr.Spec.SignerName == signer && certificates.Approved(csr) && !certificates.Failed(csr) && !certificates.Issued(csr)
}

// decide looks at a request for a signer; nil is one that is gone.
func decide(csr *certificatesv1.CertificateSigningRequest, signer string) plan {
	switch {
	case csr == nil:
		return plan{Why: "the request is gone"}
	case !waiting(csr, signer):
		return plan{Why: "it is not approved, has failed, or has its certificate"}
	}
	request, err := certificates.ParseRequest(csr.Spec.Request)
	if err != nil {
		return plan{Why: "it cannot be read", broken: fmt.Errorf("unable to parse csr %q: %w", csr.Name, err)}
	}
	if problem := problemFor(signer, request, csr.Spec.Usages); problem != "" {
		return plan{Fail: problem, Why: "it breaks the rules of its signer"}
	}
	return plan{Sign: true, Why: "it is approved and keeps the rules of its signer", request: request}
}

// problemFor says which rule of the signer a request breaks, if any.
func problemFor(signer string, request *x509.CertificateRequest, usages []certificatesv1.KeyUsage) string {
	switch signer {
	case certificatesv1.KubeletServingSignerName:
		return certificates.KubeletServingProblem(request, usages)
	case certificatesv1.KubeAPIServerClientKubeletSignerName:
		return certificates.KubeletClientProblem(request, usages)
	case certificatesv1.KubeAPIServerClientSignerName:
		return clientProblem(usages)
	}
	return "" // legacy-unknown has no rules
}

// clientProblem wants a client certificate and nothing beside it.
func clientProblem(usages []certificatesv1.KeyUsage) string {
	client := false
	for _, usage := range usages {
		switch usage {
		case certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment:
		case certificatesv1.UsageClientAuth:
			client = true
		default:
			return fmt.Sprintf("invalid usage for client certificate: %s", usage)
		}
	}
	if !client {
		return fmt.Sprintf("missing required usage for client certificate: %s", certificatesv1.UsageClientAuth)
	}
	return ""
}
