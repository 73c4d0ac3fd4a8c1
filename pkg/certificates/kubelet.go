package certificates

import (
	"crypto/x509"
	"fmt"
	"slices"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

const (
	nodesGroup     = "system:nodes"
	nodeUserPrefix = "system:node:"
)

// The words are part of the API: they end up in Failed conditions.
const (
	wrongOrganization = "subject organization is not system:nodes"
	wrongCommonName   = "subject common name does not begin with system:node:"
	noAddress         = "DNS or IP subjectAltName is required"
	hasDNSNames       = "DNS subjectAltNames are not allowed"
	hasEmails         = "Email subjectAltNames are not allowed"
	hasIPAddresses    = "IP subjectAltNames are not allowed"
	hasURIs           = "URI subjectAltNames are not allowed"
)

var (
	clientUsages  = sets.New(certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageClientAuth)
	servingUsages = sets.New(certificatesv1.UsageDigitalSignature, certificatesv1.UsageKeyEncipherment, certificatesv1.UsageServerAuth)
)

// KubeletClientProblem says why a request is not that of a kubelet for its
// client certificate; it is empty when it is one.
func KubeletClientProblem(request *x509.CertificateRequest, usages []certificatesv1.KeyUsage) string {
	switch {
	case !slices.Equal(request.Subject.Organization, []string{nodesGroup}):
		return wrongOrganization
	case len(request.DNSNames) > 0:
		return hasDNSNames
	case len(request.EmailAddresses) > 0:
		return hasEmails
	case len(request.IPAddresses) > 0:
		return hasIPAddresses
	case len(request.URIs) > 0:
		return hasURIs
	case !strings.HasPrefix(request.Subject.CommonName, nodeUserPrefix):
		return wrongCommonName
	}
	return usagesProblem(usages, clientUsages)
}

// KubeletServingProblem says why a request is not that of a kubelet for its
// serving certificate; it is empty when it is one.
func KubeletServingProblem(request *x509.CertificateRequest, usages []certificatesv1.KeyUsage) string {
	switch {
	case !slices.Equal(request.Subject.Organization, []string{nodesGroup}):
		return wrongOrganization
	case len(request.DNSNames) == 0 && len(request.IPAddresses) == 0:
		return noAddress
	case len(request.EmailAddresses) > 0:
		return hasEmails
	case len(request.URIs) > 0:
		return hasURIs
	}
	if problem := usagesProblem(usages, servingUsages); problem != "" {
		return problem
	}
	if !strings.HasPrefix(request.Subject.CommonName, nodeUserPrefix) {
		return wrongCommonName
	}
	return ""
}

// usagesProblem wants these usages and no others. Key encipherment may be
// missing: only RSA keys can be used for it.
func usagesProblem(usages []certificatesv1.KeyUsage, want sets.Set[certificatesv1.KeyUsage]) string {
	have := sets.New(usages...)
	if have.Equal(want) || have.Equal(want.Clone().Delete(certificatesv1.UsageKeyEncipherment)) {
		return ""
	}
	return fmt.Sprintf("usages did not match %v", sets.List(want))
}
