package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is that of certificate signing requests.
var Resource = schema.GroupResource{Group: certificatesv1.GroupName, Resource: "certificatesigningrequests"}

const requestBlock = "CERTIFICATE REQUEST"

// ParseRequest reads spec.request.
func ParseRequest(text []byte) (*x509.CertificateRequest, error) {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != requestBlock {
		return nil, errors.New("PEM block type must be " + requestBlock)
	}
	request, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("unable to parse the request: %w", err)
	}
	return request, nil
}

// Issued reports whether the request has its certificate, and so its end.
func Issued(csr *certificatesv1.CertificateSigningRequest) bool {
	return len(csr.Status.Certificate) > 0
}

// Approved reports whether the request may be signed. Approved and Denied count
// whatever their status: the API allows them to be True only.
func Approved(csr *certificatesv1.CertificateSigningRequest) bool {
	return has(csr, certificatesv1.CertificateApproved) && !has(csr, certificatesv1.CertificateDenied)
}

// Decided reports whether somebody has approved or denied the request.
func Decided(csr *certificatesv1.CertificateSigningRequest) bool {
	return has(csr, certificatesv1.CertificateApproved) || has(csr, certificatesv1.CertificateDenied)
}

// Failed reports whether a signer has refused the request.
func Failed(csr *certificatesv1.CertificateSigningRequest) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool {
		return c.Type == certificatesv1.CertificateFailed && (c.Status == "" || c.Status == corev1.ConditionTrue)
	})
}

func has(csr *certificatesv1.CertificateSigningRequest, kind certificatesv1.RequestConditionType) bool {
	return slices.ContainsFunc(csr.Status.Conditions, func(c certificatesv1.CertificateSigningRequestCondition) bool { return c.Type == kind })
}
