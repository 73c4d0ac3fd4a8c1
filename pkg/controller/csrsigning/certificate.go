package csrsigning

import (
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
)

const (
	// backdate lets a certificate be used where clocks are behind.
	backdate = 5 * time.Minute
	// shortLived certificates live on for all that was asked for; the life of
	// others begins with the backdate.
	shortLived = 8 * time.Hour
	// leastLifetime is for requests that ask for less.
	leastLifetime = 10 * time.Minute
)

// errRequest is in the error of a request that can never be signed.
var errRequest = errors.New("the request cannot be signed")

var serialNumbers = new(big.Int).Lsh(big.NewInt(1), 128)

// lifetime is what was asked for, within bounds.
func lifetime(asked *int32, most time.Duration) time.Duration {
	if asked == nil {
		return most
	}
	wanted := time.Duration(*asked) * time.Second
	if wanted > most {
		return most
	}
	return max(wanted, leastLifetime)
}

// template is the certificate that the request gets. Of what the request asks
// for beside subject, alternative names and key, nothing is taken over.
func template(request *x509.CertificateRequest, usages []certificatesv1.KeyUsage, life time.Duration, end, now time.Time) (*x509.Certificate, error) {
	plain, extended, err := usagesOf(usages)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errRequest, err)
	}
	if err := request.CheckSignature(); err != nil {
		return nil, fmt.Errorf("%w: unable to verify certificate request signature: %w", errRequest, err)
	}
	until := now.Add(life)
	if life >= shortLived {
		until = until.Add(-backdate)
	}
	if until.After(end) {
		until = end
	}
	if until.Before(now) {
		return nil, fmt.Errorf("refusing to sign a certificate that expired in the past: NotAfter=%v", until)
	}
	return &x509.Certificate{
		Subject: request.Subject, DNSNames: request.DNSNames, IPAddresses: request.IPAddresses,
		EmailAddresses: request.EmailAddresses, URIs: request.URIs,
		PublicKeyAlgorithm: request.PublicKeyAlgorithm, PublicKey: request.PublicKey,
		KeyUsage: plain, ExtKeyUsage: extended, BasicConstraintsValid: true,
		NotBefore: now.Add(-backdate), NotAfter: until,
	}, nil
}

// sign makes the certificate, in PEM.
func sign(authority *certificates.Authority, request *x509.CertificateRequest, spec *certificatesv1.CertificateSigningRequestSpec, most time.Duration, now time.Time) ([]byte, error) {
	certificate, err := template(request, spec.Usages, lifetime(spec.ExpirationSeconds, most), authority.Certificate.NotAfter, now)
	if err != nil {
		return nil, err
	}
	if certificate.SerialNumber, err = rand.Int(rand.Reader, serialNumbers); err != nil {
		return nil, fmt.Errorf("unable to generate a serial number: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate, authority.Certificate, request.PublicKey, authority.Key)
	if err != nil {
		return nil, fmt.Errorf("failed to sign certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
