package csrcleaner

import (
	"cmp"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	// judgedAge is how long a request stays after it was issued, denied or failed.
	judgedAge = time.Hour
	// pendingAge is how long it stays with no condition at all.
	pendingAge = 24 * time.Hour
	// period is the time between two looks at all requests.
	period = time.Hour
	// unissuedAge is how long an approved request waits for its signer.
	unissuedAge = 24 * time.Hour
)

// maxExplained bounds how many requests a plan gives the reason of.
const maxExplained = 50

// plan looks at all requests. One is deleted in the version that was looked at, and
// one that cannot be deleted holds up no other.
func plan(all []*certificatesv1.CertificateSigningRequest, now time.Time) act.Plan {
	var steps []act.Step
	var reasons []string
	for _, csr := range slices.SortedFunc(slices.Values(all), func(a, b *certificatesv1.CertificateSigningRequest) int { return cmp.Compare(a.Name, b.Name) }) {
		why := past(csr, now)
		if why == "" {
			continue
		}
		steps = append(steps, act.Delete{Of: csr, Unchanged: true})
		if len(reasons) < maxExplained {
			reasons = append(reasons, csr.Name+": "+why)
		}
	}
	p := act.Plan{Why: fmt.Sprintf("%d of %d requests are old enough to be deleted: %s", len(steps), len(all), strings.Join(reasons, ", ")), RequeueAfter: period}
	if len(steps) == 0 {
		p.Why = fmt.Sprintf("none of %d requests is old enough to be deleted", len(all))
		return p
	}
	p.Stages = []act.Stage{act.EachInTurn(steps...)}
	return p
}

// past says why nobody needs the request any more; it is empty while somebody may.
func past(csr *certificatesv1.CertificateSigningRequest, now time.Time) string {
	if len(csr.Status.Conditions) == 0 && older(csr.CreationTimestamp, pendingAge, now) {
		return "it was neither approved nor denied for a day"
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
