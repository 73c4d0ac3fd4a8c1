package csrsigning

import (
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// LegacyUnknown is the signer of requests made before there were signers.
const LegacyUnknown = "kubernetes.io/legacy-unknown"

const failedReason = "SignerValidationFailure"

// observed is a request, and what came of signing it, if it is to be signed.
type observed struct {
	csr *certificatesv1.CertificateSigningRequest
	inspection
	certificate []byte
	// unsigned is why it could not be signed.
	unsigned error
}

// inspection is what a signer finds in a request: one of the fields is set.
type inspection struct {
	// settled is why the signer has nothing to do.
	settled string
	// unreadable is why it can never be signed.
	unreadable error
	// problem is the rule of the signer that it breaks.
	problem string
	// request is to be signed.
	request *x509.CertificateRequest
}

// waiting reports whether the request is one that this signer has to act on.
func waiting(csr *certificatesv1.CertificateSigningRequest, signer string) bool {
	return settled(csr, signer) == ""
}

// settled says why a signer has nothing to do for a request; it is empty when it has.
func settled(csr *certificatesv1.CertificateSigningRequest, signer string) string {
	switch {
	case csr.Spec.SignerName != signer:
		return "it is for another signer"
	case certificates.Issued(csr):
		return "it is complete: it has its certificate"
	case certificates.Failed(csr):
		return "it is complete: it was refused for good"
	case !certificates.Decided(csr):
		return "it waits to be approved"
	case !certificates.Approved(csr):
		return "it is complete: it was denied"
	}
	return ""
}

// inspect holds a request against the rules of a signer.
func inspect(csr *certificatesv1.CertificateSigningRequest, signer string) inspection {
	if why := settled(csr, signer); why != "" {
		return inspection{settled: why}
	}
	request, err := certificates.ParseRequest(csr.Spec.Request)
	if err != nil {
		return inspection{unreadable: fmt.Errorf("unable to parse csr %q: %w", csr.Name, err)}
	}
	if problem := problemFor(signer, request, csr.Spec.Usages); problem != "" {
		return inspection{problem: problem}
	}
	return inspection{request: request}
}

func plan(o observed, now time.Time) act.Plan {
	switch {
	case o.settled != "":
		return act.Plan{Why: o.settled}
	case o.unreadable != nil:
		return act.Plan{Why: "it cannot be read", Terminal: errors.Join(errRequest, o.unreadable)}
	case o.problem != "":
		return act.Plan{Why: "it breaks a rule of its signer: " + o.problem, Stages: status(o.csr, func(s *certificatesv1.CertificateSigningRequestStatus) {
			s.Conditions = append(s.Conditions, certificatesv1.CertificateSigningRequestCondition{
				Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue,
				Reason: failedReason, Message: o.problem, LastUpdateTime: metav1.NewTime(now),
			})
		})}
	case errors.Is(o.unsigned, errRequest):
		return act.Plan{Why: "it can never be signed", Terminal: fmt.Errorf("error auto signing csr: %w", o.unsigned)}
	case o.unsigned != nil:
		return act.Plan{Why: "it could not be signed", Err: fmt.Errorf("error auto signing csr: %w", o.unsigned)}
	}
	return act.Plan{Why: "it is approved and fulfils the rules of its signer: signing it", Stages: status(o.csr, func(s *certificatesv1.CertificateSigningRequestStatus) {
		s.Certificate = o.certificate
	})}
}

// status writes a changed status. Managed fields are all that the cache lacks, and the
// server keeps those of an object that comes without.
func status(cached *certificatesv1.CertificateSigningRequest, change func(*certificatesv1.CertificateSigningRequestStatus)) []act.Stage {
	csr := cached.DeepCopy()
	change(&csr.Status)
	return act.Stages(act.Update{Object: csr, Subresource: "status"})
}

// problemFor returns which rule of the signer a request breaks, if any.
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
