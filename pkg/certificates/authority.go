package certificates

import (
	"crypto"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"k8s.io/client-go/util/cert"
)

// Authority is what certificates are signed with.
type Authority struct {
	// Certificate is that of the authority.
	Certificate *x509.Certificate
	// Key belongs to it.
	Key crypto.Signer
}

// ParseAuthority reads one certificate and its key, both in PEM.
func ParseAuthority(certificate, key []byte) (*Authority, error) {
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	parsed, err := cert.ParseCertsPEM(certificate)
	if err != nil {
		return nil, err
	}
	if len(parsed) != 1 {
		return nil, fmt.Errorf("expected 1 certificate, found %d", len(parsed))
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key cannot sign")
	}
	return &Authority{Certificate: parsed[0], Key: signer}, nil
}
