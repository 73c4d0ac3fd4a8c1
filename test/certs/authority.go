package certs

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"time"
)

// Issue makes the certificate, in PEM, that a request in DER asks for.
func Issue(request []byte, begin, end time.Time) ([]byte, error) {
	asked, err := x509.ParseCertificateRequest(request)
	if err != nil {
		return nil, fmt.Errorf("read a certificate request: %w", err)
	}
	signer, err := Key("ed25519")
	if err != nil {
		return nil, err
	}
	issuer := &x509.Certificate{Subject: pkix.Name{CommonName: "story"}}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: asked.Subject, NotBefore: begin, NotAfter: end}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, asked.PublicKey, signer)
	if err != nil {
		return nil, fmt.Errorf("issue a certificate: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

// Authority makes a certificate that signs itself, and its key, both in PEM.
func Authority(name string, begin, end time.Time) (certificate, key []byte, err error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make the key of %s: %w", name, err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotBefore: begin, NotAfter: end,
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, signer.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("make the certificate of %s: %w", name, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(signer)
	if err != nil {
		return nil, nil, fmt.Errorf("encode the key of %s: %w", name, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}), nil
}
