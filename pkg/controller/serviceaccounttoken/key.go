package serviceaccounttoken

import (
	"crypto"
	"fmt"
	"os"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// LoadKey reads the private key that --service-account-private-key-file names:
// RSA in PKCS#1 or PKCS#8, or ECDSA.
func LoadKey(file string) (crypto.Signer, error) {
	key, err := keyutil.PrivateKeyFromFile(file)
	if err != nil {
		return nil, fmt.Errorf("error reading key for service account token controller: %w (from --service-account-private-key-file)", err)
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("error reading key for service account token controller: %s holds a key that cannot sign (from --service-account-private-key-file)", file)
	}
	return signer, nil
}

// LoadRootCA reads the bundle that --root-ca-file names and returns it as it is,
// once it is known to hold at least one certificate.
func LoadRootCA(file string) ([]byte, error) {
	bundle, err := os.ReadFile(file)
	if err == nil {
		_, err = certutil.ParseCertsPEM(bundle)
	}
	if err != nil {
		return nil, fmt.Errorf("error parsing root-ca-file at %s: %w", file, err)
	}
	return bundle, nil
}
