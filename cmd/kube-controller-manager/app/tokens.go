package app

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/transport"
)

// noToken is in the error of a request that was not sent for want of a token. The library
// says besides only that it has tried for long enough.
const noToken = "failed to get token for "

// tokens gives service accounts their tokens, and remembers why it could not.
type tokens struct {
	typedcorev1.CoreV1Interface

	mu     sync.Mutex
	failed map[string]error
}

func newTokens(client typedcorev1.CoreV1Interface) *tokens {
	return &tokens{CoreV1Interface: client, failed: map[string]error{}}
}

// ServiceAccounts returns the accounts of a namespace.
func (t *tokens) ServiceAccounts(namespace string) typedcorev1.ServiceAccountInterface {
	return &notedAccounts{t.CoreV1Interface.ServiceAccounts(namespace), t}
}

func (t *tokens) note(account string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.failed[account] = err
}

// because wraps the transport of a service account: a request that gets no token says why.
func (t *tokens) because(account string) transport.WrapperFunc {
	return func(next http.RoundTripper) http.RoundTripper {
		return withCause(func(req *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(req)
			if err == nil || !strings.Contains(err.Error(), noToken) {
				return response, err
			}
			t.mu.Lock()
			cause := t.failed[account]
			t.mu.Unlock()
			if cause == nil {
				return response, err
			}
			// The answer to the request for a token is none to this request.
			return response, fmt.Errorf("%w: %v", err, cause)
		})
	}
}

type withCause func(*http.Request) (*http.Response, error)

// RoundTrip sends a request.
func (f withCause) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// notedAccounts are service accounts whose trouble is noted.
type notedAccounts struct {
	typedcorev1.ServiceAccountInterface
	in *tokens
}

// Get reads an account.
func (a *notedAccounts) Get(ctx context.Context, name string, options metav1.GetOptions) (*corev1.ServiceAccount, error) {
	account, err := a.ServiceAccountInterface.Get(ctx, name, options)
	a.in.note(name, err)
	return account, err
}

// CreateToken asks for a token.
func (a *notedAccounts) CreateToken(ctx context.Context, name string, request *authenticationv1.TokenRequest, options metav1.CreateOptions) (*authenticationv1.TokenRequest, error) {
	token, err := a.ServiceAccountInterface.CreateToken(ctx, name, request, options)
	a.in.note(name, err)
	return token, err
}
