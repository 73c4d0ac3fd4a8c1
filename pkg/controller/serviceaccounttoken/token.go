package serviceaccounttoken

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
)

// legacyIssuer is the issuer of the tokens that are kept in secrets.
const legacyIssuer = "kubernetes/serviceaccount"

// legacyClaims are what the API server checks of a token kept in a secret. Such
// a token has no expiry: it ends with its secret or its service account.
type legacyClaims struct {
	jwt.Claims
	Namespace   string `json:"kubernetes.io/serviceaccount/namespace,omitempty"`
	SecretName  string `json:"kubernetes.io/serviceaccount/secret.name,omitempty"`
	AccountName string `json:"kubernetes.io/serviceaccount/service-account.name,omitempty"`
	AccountUID  string `json:"kubernetes.io/serviceaccount/service-account.uid,omitempty"`
}

// issuer signs tokens with one key.
type issuer struct {
	signer jose.Signer
}

func newIssuer(key crypto.Signer) (*issuer, error) {
	if key == nil {
		return nil, errors.New("a private key is needed to sign service account tokens")
	}
	algorithm, err := algorithmOf(key)
	if err != nil {
		return nil, err
	}
	id, err := keyID(key.Public())
	if err != nil {
		return nil, err
	}
	signer, err := jose.NewSigner(jose.SigningKey{
		Algorithm: algorithm,
		Key:       jose.JSONWebKey{Algorithm: string(algorithm), Key: key, KeyID: id, Use: "sig"},
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("make a signer of service account tokens: %w", err)
	}
	return &issuer{signer: signer}, nil
}

func algorithmOf(key crypto.Signer) (jose.SignatureAlgorithm, error) {
	switch k := key.(type) {
	case *rsa.PrivateKey:
		return jose.RS256, nil
	case *ecdsa.PrivateKey:
		switch k.Curve {
		case elliptic.P256():
			return jose.ES256, nil
		case elliptic.P384():
			return jose.ES384, nil
		case elliptic.P521():
			return jose.ES512, nil
		}
		return "", errors.New("unknown private key curve, must be 256, 384, or 521")
	}
	return "", fmt.Errorf("unknown private key type %T, must be *rsa.PrivateKey or *ecdsa.PrivateKey", key)
}

// keyID names a public key as the API server does when it looks for the key of a token.
func keyID(public crypto.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("derive the key ID of the service account key: %w", err)
	}
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// token signs the token of a service account that is kept in the secret of that name.
func (i *issuer) token(account *corev1.ServiceAccount, secretName string) (string, error) {
	signed, err := jwt.Signed(i.signer).Claims(legacyClaims{
		Claims: jwt.Claims{
			Issuer:  legacyIssuer,
			Subject: serviceaccount.MakeUsername(account.Namespace, account.Name),
		},
		Namespace:   account.Namespace,
		SecretName:  secretName,
		AccountName: account.Name,
		AccountUID:  string(account.UID),
	}).Serialize()
	if err != nil {
		return "", fmt.Errorf("sign a token for service account %s/%s: %w", account.Namespace, account.Name, err)
	}
	return signed, nil
}
