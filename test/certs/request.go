package certs

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
)

// order describes a request; BROKEN and KEY are its only words that are no part of it.
type order struct {
	template x509.CertificateRequest
	key      crypto.Signer
	broken   bool
}

var keys = map[string]func() (crypto.Signer, error){
	// A fixed seed and a scheme without chance: the same words give the same bytes.
	"ed25519": func() (crypto.Signer, error) {
		return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize)), nil
	},
	"ecdsa": sync.OnceValues(func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) }),
	"rsa":   sync.OnceValues(func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 2048) }),
}

// Request makes a certificate request in PEM of words such as
//
//	O=system:nodes CN=system:node:a DNS=a.example IP=10.0.0.1 EMAIL=a@b URI=spiffe://a
//
// EXT=1.2.3.4 asks for an extension of that kind, CA=true for the basic constraints
// of an authority. KEY=rsa or KEY=ecdsa takes a key of that kind, new in each process;
// without it the key is always the same, and so is the request. BROKEN=signature spoils the signature.
func Request(words string) ([]byte, error) {
	var o order
	if err := o.read(words); err != nil {
		return nil, fmt.Errorf("make a certificate request of %q: %w", words, err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &o.template, o.key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate request of %q: %w", words, err)
	}
	if o.broken {
		der[len(der)-1] ^= 1
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}), nil
}

// Key is what requests with KEY=kind are signed with.
func Key(kind string) (crypto.Signer, error) {
	if keys[kind] == nil {
		return nil, fmt.Errorf("no keys of kind %q", kind)
	}
	return keys[kind]()
}

func (o *order) read(words string) error {
	var err error
	if o.key, err = Key("ed25519"); err != nil {
		return err
	}
	for word := range strings.FieldsSeq(words) {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return fmt.Errorf("%q is not KEY=value", word)
		}
		if err := o.set(key, value); err != nil {
			return err
		}
	}
	return nil
}

func (o *order) set(key, value string) error {
	t := &o.template
	var err error
	switch key {
	case "CN":
		t.Subject.CommonName = value
	case "O":
		t.Subject.Organization = append(t.Subject.Organization, value)
	case "OU":
		t.Subject.OrganizationalUnit = append(t.Subject.OrganizationalUnit, value)
	case "DNS":
		t.DNSNames = append(t.DNSNames, value)
	case "EMAIL":
		t.EmailAddresses = append(t.EmailAddresses, value)
	case "IP":
		address := net.ParseIP(value)
		if address == nil {
			return fmt.Errorf("%q is no IP address", value)
		}
		t.IPAddresses = append(t.IPAddresses, address)
	case "URI":
		var u *url.URL
		if u, err = url.Parse(value); err == nil {
			t.URIs = append(t.URIs, u)
		}
	case "EXT", "CA":
		return o.extend(key, value)
	case "KEY":
		o.key, err = Key(value)
	case "BROKEN":
		o.broken = true
	default:
		return fmt.Errorf("unknown word %s", key)
	}
	return err
}

func (o *order) extend(key, value string) error {
	extension := pkix.Extension{Value: []byte{0x05, 0x00}}
	if key == "CA" {
		constraints, err := asn1.Marshal(struct{ IsCA bool }{true})
		if err != nil {
			return err
		}
		extension, value = pkix.Extension{Critical: true, Value: constraints}, "2.5.29.19"
	}
	for part := range strings.SplitSeq(value, ".") {
		var n int
		if _, err := fmt.Sscan(part, &n); err != nil {
			return fmt.Errorf("%q is no object identifier", value)
		}
		extension.Id = append(extension.Id, n)
	}
	o.template.ExtraExtensions = append(o.template.ExtraExtensions, extension)
	return nil
}
