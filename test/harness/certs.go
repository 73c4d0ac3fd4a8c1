package harness

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// authority is a certificate authority of a test control plane.
type authority struct {
	cert *x509.Certificate
	key  crypto.Signer
}

// keyPair is a certificate and its key, in PEM.
type keyPair struct {
	cert, key []byte
}

func newAuthority(name string) (*authority, *keyPair, error) {
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: name},
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		BasicConstraintsValid: true,
		IsCA:                  true,
	}
	pair, cert, key, err := sign(template, nil)
	if err != nil {
		return nil, nil, err
	}
	return &authority{cert: cert, key: key}, pair, nil
}

// loadAuthority reads an authority that another program has made.
func loadAuthority(certFile, keyFile string) (*authority, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority: %w", err)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("read the certificate authority: a key of type %T cannot sign", pair.PrivateKey)
	}
	return &authority{cert: pair.Leaf, key: signer}, nil
}

// client issues a client certificate; the API server reads the user from the
// common name and the groups from the organizations.
func (a *authority) client(user string, groups ...string) (*keyPair, error) {
	pair, _, _, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a)
	return pair, err
}

// server issues a serving certificate for loopback and the names under which
// an API server is known inside a cluster.
func (a *authority) server(name string) (*keyPair, error) {
	pair, _, _, err := sign(&x509.Certificate{
		Subject:     pkix.Name{CommonName: name},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames:    []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, a)
	return pair, err
}

// sign makes a key and a certificate for it; without a parent it signs itself.
func sign(template *x509.Certificate, parent *authority) (*keyPair, *x509.Certificate, crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make a key for %s: %w", template.Subject.CommonName, err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, nil, nil, fmt.Errorf("make a serial number: %w", err)
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour)
	template.NotAfter = time.Now().Add(7 * 24 * time.Hour)
	issuer, signer := template, crypto.Signer(key)
	if parent != nil {
		issuer, signer = parent.cert, parent.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, issuer, key.Public(), signer)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("sign the certificate of %s: %w", template.Subject.CommonName, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("read the certificate of %s: %w", template.Subject.CommonName, err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("encode the key of %s: %w", template.Subject.CommonName, err)
	}
	return &keyPair{cert: encode("CERTIFICATE", der), key: encode("EC PRIVATE KEY", keyDER)}, cert, key, nil
}

// serviceAccountKeys makes the pair that signs and checks service account tokens.
func serviceAccountKeys() (private, public []byte, err error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, nil, fmt.Errorf("make the service account key: %w", err)
	}
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return nil, nil, fmt.Errorf("encode the service account key: %w", err)
	}
	return encode("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(key)), encode("PUBLIC KEY", pub), nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// pki is every key and certificate of one control plane, as files in dir.
type pki struct {
	dir string
	ca  *authority

	caCert []byte
	admin  *keyPair
	root   *keyPair
}

func newPKI(dir string) (*pki, error) {
	ca, caPair, err := newAuthority("kubernetes-ca")
	if err != nil {
		return nil, err
	}
	front, frontPair, err := newAuthority("front-proxy-ca")
	if err != nil {
		return nil, err
	}
	p := &pki{dir: dir, ca: ca, caCert: caPair.cert}
	serving, err := ca.server("kube-apiserver")
	if err != nil {
		return nil, err
	}
	proxy, err := front.client("front-proxy-client")
	if err != nil {
		return nil, err
	}
	if p.admin, err = ca.client("admin", "system:masters"); err != nil {
		return nil, err
	}
	if p.root, err = ca.client("system:kube-controller-manager"); err != nil {
		return nil, err
	}
	private, public, err := serviceAccountKeys()
	if err != nil {
		return nil, err
	}
	_, otherPair, err := newAuthority("other-ca")
	if err != nil {
		return nil, err
	}
	for name, content := range map[string][]byte{
		"ca.crt": caPair.cert, "ca.key": caPair.key,
		"other-ca.crt": otherPair.cert, "other-ca.key": otherPair.key,
		"front-proxy-ca.crt": frontPair.cert,
		"apiserver.crt":      serving.cert, "apiserver.key": serving.key,
		"front-proxy-client.crt": proxy.cert, "front-proxy-client.key": proxy.key,
		"sa.key": private, "sa.pub": public,
	} {
		if err := os.WriteFile(p.file(name), content, 0o600); err != nil {
			return nil, fmt.Errorf("write the keys: %w", err)
		}
	}
	return p, nil
}

func (p *pki) file(name string) string { return filepath.Join(p.dir, name) }
