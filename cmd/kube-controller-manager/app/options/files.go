package options

import (
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

// holdAuthority says why two files are not the one certificate of an authority and its key.
func holdAuthority(certFile, keyFile string) error {
	certificate, err := os.ReadFile(certFile)
	if err != nil {
		return err
	}
	key, err := os.ReadFile(keyFile)
	if err != nil {
		return err
	}
	_, err = certificates.ParseAuthority(certificate, key)
	return err
}
