package bootstraptokens

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/util/secrets"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
)

var (
	// ErrMalformed is in the error of a secret that holds no usable token. No
	// error shows a value of the secret: logs and pages repeat it.
	ErrMalformed = errors.New("malformed bootstrap token")
	// ErrNotForSigning is in the error of a token that is in order but does not sign.
	ErrNotForSigning = errors.New("not for signing")
)

// Informers makes informers whose secrets are only those of bootstrap tokens.
var Informers = cache.Only(metav1.NamespaceSystem, "type", string(api.SecretTypeBootstrapToken))

// Is reports whether a secret is there for a bootstrap token, in order or not.
func Is(secret *corev1.Secret) bool {
	return secret.Namespace == metav1.NamespaceSystem && secret.Type == api.SecretTypeBootstrapToken
}

// Life is how long a token is valid.
type Life struct {
	// Ends is false for a token without an expiration, At is when it ends. One
	// whose expiration cannot be read has ended long ago.
	Ends bool
	At   time.Time
	// Err says that the expiration cannot be read.
	Err error
}

// LifeOf returns how long the token of the secret is valid.
func LifeOf(secret *corev1.Secret) Life {
	expiration := secrets.GetData(secret, api.BootstrapTokenExpirationKey)
	if expiration == "" {
		return Life{}
	}
	at, err := time.Parse(time.RFC3339, expiration)
	if err != nil {
		// The error of Parse would quote what the Secret holds.
		return Life{Ends: true, Err: fmt.Errorf("%w: its expiration is not a time as in RFC 3339", ErrMalformed)}
	}
	return Life{Ends: true, At: at}
}

// Over reports whether the token has ended.
func (l Life) Over(now time.Time) bool { return l.Ends && !now.Before(l.At) }

// Left is the time until the token ends; zero if it has ended or never ends.
func (l Life) Left(now time.Time) time.Duration {
	if !l.Ends || l.Over(now) {
		return 0
	}
	return l.At.Sub(now)
}

// Token is what signs.
type Token struct {
	// ID names the token in public, Secret is its key.
	ID, Secret string
	// Life is how long it signs.
	Life Life
}

// ForSigning returns the token of a secret if it may sign at this time. The
// error is ErrMalformed or ErrNotForSigning and says why it may not.
func ForSigning(secret *corev1.Secret, now time.Time) (Token, error) {
	id, ok := secrets.ParseName(secret.Name)
	if !ok {
		return Token{}, fmt.Errorf("%w: the name is not %s and six letters or digits", ErrMalformed, api.BootstrapTokenSecretPrefix)
	}
	if secrets.GetData(secret, api.BootstrapTokenIDKey) != id {
		return Token{}, fmt.Errorf("%w: %s is not that of the name", ErrMalformed, api.BootstrapTokenIDKey)
	}
	key := secrets.GetData(secret, api.BootstrapTokenSecretKey)
	if key == "" {
		return Token{}, fmt.Errorf("%w: there is no %s", ErrMalformed, api.BootstrapTokenSecretKey)
	}
	life := LifeOf(secret)
	switch {
	case life.Err != nil:
		return Token{}, life.Err
	case life.Over(now):
		return Token{}, fmt.Errorf("%w: expired", ErrNotForSigning)
	case secrets.GetData(secret, api.BootstrapTokenUsageSigningKey) != "true":
		return Token{}, fmt.Errorf("%w: %s is not \"true\"", ErrNotForSigning, api.BootstrapTokenUsageSigningKey)
	}
	return Token{ID: id, Secret: key, Life: life}, nil
}
