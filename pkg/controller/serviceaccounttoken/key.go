package serviceaccounttoken

import (
	"crypto"
	"fmt"
	"os"

	certutil "k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// ReadKey reads a private key that can sign tokens: RSA in PKCS#1 or PKCS#8, or ECDSA on
// the curve P-256, P-384 or P-521.
func ReadKey(file string) (crypto.Signer, error) {
	key, err := keyutil.PrivateKeyFromFile(file)
	if err != nil {
		return nil, err
	}
	signer, ok := key.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s holds a key that cannot sign", file)
	}
	if _, err := newIssuer(signer); err != nil {
		return nil, fmt.Errorf("%s holds a key that cannot sign tokens: %w", file, err)
	}
	return signer, nil
}

// LoadKey reads the key that --service-account-private-key-file names.
func LoadKey(file string) (crypto.Signer, error) {
	key, err := ReadKey(file)
	if err != nil {
		return nil, fmt.Errorf("error reading key for service account token controller: %w (from --service-account-private-key-file)", err)
	}
	return key, nil
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
