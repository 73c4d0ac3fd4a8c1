package csrcleaner

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
)

const (
	// judgedAge is how long a request stays after it was issued, denied or failed.
	judgedAge = time.Hour
	// pendingAge is how long it stays with no condition at all.
	pendingAge = 24 * time.Hour
	// unissuedAge is how long an approved request waits for its signer.
	unissuedAge = 24 * time.Hour
)

// removal is a request that is to go, and why.
type removal struct {
	csr *certificatesv1.CertificateSigningRequest
	why string
}

// plan is what one look at all requests came to.
type plan struct {
	Looked int      `json:"looked"`
	Remove []string `json:"remove,omitempty"`

	removals []removal
}

// maxExplained bounds what the debug endpoint shows of a plan.
const maxExplained = 50

// decide looks at all requests.
func decide(all []*certificatesv1.CertificateSigningRequest, now time.Time) plan {
	do := plan{Looked: len(all)}
	for _, csr := range all {
		if why := past(csr, now); why != "" {
			do.removals = append(do.removals, removal{csr, why})
		}
	}
	slices.SortFunc(do.removals, func(a, b removal) int { return cmp.Compare(a.csr.Name, b.csr.Name) })
	for _, r := range do.removals[:min(len(do.removals), maxExplained)] {
		do.Remove = append(do.Remove, r.csr.Name+": "+r.why)
	}
	return do
}

// past says why nobody needs the request any more; it is empty while somebody may.
func past(csr *certificatesv1.CertificateSigningRequest, now time.Time) string {
	if len(csr.Status.Conditions) == 0 && older(csr.CreationTimestamp, pendingAge, now) {
		return "nobody has judged it for a day"
	}
	for _, condition := range csr.Status.Conditions {
		old := older(condition.LastUpdateTime, judgedAge, now)
		switch {
		case condition.Type == certificatesv1.CertificateDenied && old:
			return "it was denied an hour ago"
		case condition.Type == certificatesv1.CertificateFailed && old:
			return "it failed an hour ago"
		case condition.Type == certificatesv1.CertificateApproved && old && certificates.Issued(csr):
			return "it was approved an hour ago and has its certificate"
		case condition.Type == certificatesv1.CertificateApproved && !certificates.Issued(csr) && older(condition.LastUpdateTime, unissuedAge, now):
			return "it was approved a day ago and never issued"
		case condition.Type == certificatesv1.CertificateApproved && expired(csr.Status.Certificate, now):
			return "its certificate has expired"
		}
	}
	return ""
}

// older counts a time that was never set as young.
func older(t metav1.Time, age time.Duration, now time.Time) bool {
	return !t.IsZero() && now.Sub(t.Time) > age
}

// expired counts a certificate that cannot be read as valid.
func expired(text []byte, now time.Time) bool {
	block, _ := pem.Decode(text)
	if block == nil {
		return false
	}
	chain, err := x509.ParseCertificates(block.Bytes)
	return err == nil && len(chain) > 0 && now.After(chain[0].NotAfter)
}
