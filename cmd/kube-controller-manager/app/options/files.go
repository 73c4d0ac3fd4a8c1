package options

import (
	"crypto/tls"
	"fmt"
	"os"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/cert"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
)

// holdsCertificates says why a file is not a list of certificates in PEM.
func holdsCertificates(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, err = cert.ParseCertsPEM(data)
	return err
}

// holdsCABundle says why a file is not a CA bundle that the secure port can
// check client certificates with.
func holdsCABundle(name, path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, err = dynamiccertificates.NewStaticCAContent(fmt.Sprintf("%s::%s", name, path), data)
	return err
}

// holdKeyPair says why two files are not a certificate and its key.
func holdKeyPair(certFile, keyFile string) error {
	return holdPair(certFile, keyFile, func(certificate, key []byte) error {
		_, err := tls.X509KeyPair(certificate, key)
		return err
	})
}

// holdAuthority says why two files are not the one certificate of an authority and its key.
func holdAuthority(certFile, keyFile string) error {
	return holdPair(certFile, keyFile, func(certificate, key []byte) error {
		_, err := certificates.ParseAuthority(certificate, key)
		return err
	})
}

func holdPair(certFile, keyFile string, check func(certificate, key []byte) error) error {
	certificate, err := os.ReadFile(certFile)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	return check(certificate, key)
}
