package harness

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
)

// Proxy stands between a manager and the API server, and does to requests what it
// is told to. It authenticates as a front proxy, so the API server sees each
// request as its sender's.
type Proxy struct {
	// Kubeconfig is the manager's, through the proxy.
	Kubeconfig string

	server *http.Server

	mu      sync.Mutex
	faults  func(*http.Request) Fault
	writes  []string
	hit     int
	watches map[*openWatch]bool
	expired map[string]bool
	lags    []lag
}

// StartProxy runs a proxy to the end of the test. Nothing goes wrong until Disturb.
func (cp *ControlPlane) StartProxy(t testing.TB) *Proxy {
	t.Helper()
	p, err := cp.NewProxy()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// NewProxy is StartProxy for a caller that closes the proxy itself.
func (cp *ControlPlane) NewProxy() (*Proxy, error) {
	p := &Proxy{watches: map[*openWatch]bool{}}
	p.Disturb(nil)
	if err := p.start(cp); err != nil {
		return nil, err
	}
	return p, nil
}

// Close ends the proxy and all that passes it.
func (p *Proxy) Close() { _ = p.server.Close() }

func (p *Proxy) start(cp *ControlPlane) error {
	target, err := url.Parse(cp.URL)
	if err != nil {
		return fmt.Errorf("read the API server's address: %w", err)
	}
	front, err := tls.LoadX509KeyPair(cp.File("front-proxy-client.crt"), cp.File("front-proxy-client.key"))
	if err != nil {
		return fmt.Errorf("read the front proxy's key: %w", err)
	}
	serving, err := tls.LoadX509KeyPair(cp.File("apiserver.crt"), cp.File("apiserver.key"))
	if err != nil {
		return fmt.Errorf("read the serving key: %w", err)
	}
	authorities := x509.NewCertPool()
	authorities.AppendCertsFromPEM(cp.pki.caCert)
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			asSender(r)
		},
		Transport: &http.Transport{ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 100,
			TLSClientConfig: &tls.Config{RootCAs: authorities, Certificates: []tls.Certificate{front}}},
		FlushInterval:  -1,
		ModifyResponse: p.answered,
		ErrorHandler:   func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
		ErrorLog:       log.New(io.Discard, "", 0),
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	p.server = &http.Server{
		Handler:   p.disturb(forward),
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{serving}, ClientAuth: tls.RequestClientCert, ClientCAs: authorities},
		ErrorLog:  log.New(io.Discard, "", 0),
	}
	go func() { _ = p.server.ServeTLS(listener, "", "") }()
	return p.writeKubeconfig(cp, "https://"+listener.Addr().String())
}

// asSender says on whose behalf the request is made: its token goes along, and a
// client certificate becomes headers.
func asSender(r *httputil.ProxyRequest) {
	if r.In.Header.Get("Authorization") != "" || r.In.TLS == nil || len(r.In.TLS.PeerCertificates) == 0 {
		return
	}
	subject := r.In.TLS.PeerCertificates[0].Subject
	r.Out.Header.Set("X-Remote-User", subject.CommonName)
	r.Out.Header["X-Remote-Group"] = append([]string{"system:authenticated"}, subject.Organization...)
}

func (p *Proxy) writeKubeconfig(cp *ControlPlane, address string) error {
	config, err := clientcmd.LoadFromFile(cp.ManagerKubeconfig)
	if err != nil {
		return fmt.Errorf("read the manager's kubeconfig: %w", err)
	}
	for _, cluster := range config.Clusters {
		cluster.Server = address
	}
	dir, err := os.MkdirTemp(cp.Dir, "proxy-")
	if err != nil {
		return fmt.Errorf("make the proxy's directory: %w", err)
	}
	p.Kubeconfig = filepath.Join(dir, "proxy.conf")
	if err := clientcmd.WriteToFile(*config, p.Kubeconfig); err != nil {
		return fmt.Errorf("write the proxy's kubeconfig: %w", err)
	}
	return nil
}

// Disturb has faults say what goes wrong with each request from now on; nil ends it.
func (p *Proxy) Disturb(faults func(*http.Request) Fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if faults == nil {
		faults = func(*http.Request) Fault { return Fault{} }
		p.expired, p.lags = map[string]bool{}, nil
	}
	p.faults = faults
}

// Writes are the requests that write, as they came; those of leases are left out,
// and reviews, which change nothing.
func (p *Proxy) Writes() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.writes)
}

// Hit is how many requests something went wrong with.
func (p *Proxy) Hit() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hit
}

type faultKey struct{}

func (p *Proxy) disturb(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		fault := p.faults(r)
		if IsWrite(r) && !strings.Contains(r.URL.Path, "/leases") && !strings.HasSuffix(r.URL.Path, "reviews") {
			p.writes = append(p.writes, r.Method+" "+r.URL.Path)
		}
		if fault != (Fault{}) {
			p.hit++
		}
		p.mu.Unlock()
		if fault.Early {
			p.passOnLater(next, r, fault.Delay)
			panic(http.ErrAbortHandler)
		}
		if !pause(r.Context(), fault.Delay) {
			panic(http.ErrAbortHandler)
		}
		ctx, done, expired := p.watching(r)
		defer done()
		switch {
		case expired:
			answerExpired(w)
			return
		case fault.Refuse != 0:
			answerStatus(w, fault.Refuse, reasonOf(fault.Refuse), "refused on the way")
			return
		case fault.Absent != 0:
			answerAbsent(w, fault.Absent)
			return
		}
		// What has reached the API server goes on although its sender is gone.
		if IsWrite(r) {
			ctx = context.WithoutCancel(ctx)
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(ctx, faultKey{}, fault)))
	})
}

// passOnLater has a request carried out whose sender has given up.
func (p *Proxy) passOnLater(next http.Handler, r *http.Request, after time.Duration) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	later := r.Clone(context.WithoutCancel(r.Context()))
	later.Body = io.NopCloser(bytes.NewReader(body))
	go func() {
		pause(later.Context(), after)
		next.ServeHTTP(nobody{}, later)
	}()
}

// nobody is who reads the answer.
type nobody struct{}

// Header returns headers that are dropped.
func (nobody) Header() http.Header { return http.Header{} }

// Write drops the answer.
func (nobody) Write(b []byte) (int, error) { return len(b), nil }

// WriteHeader drops the code.
func (nobody) WriteHeader(int) {}

// IsWrite reports whether the request changes something.
func IsWrite(r *http.Request) bool { return r.Method != http.MethodGet && r.Method != http.MethodHead }

func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// answerStatus answers as the API server does.
func answerStatus(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Audit-Id", "refused-on-the-way")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status: metav1.StatusFailure, Code: int32(code), Message: message, Reason: reason})
}

var reasons = map[int]metav1.StatusReason{
	http.StatusBadRequest:          metav1.StatusReasonBadRequest,
	http.StatusUnauthorized:        metav1.StatusReasonUnauthorized,
	http.StatusForbidden:           metav1.StatusReasonForbidden,
	http.StatusNotFound:            metav1.StatusReasonNotFound,
	http.StatusMethodNotAllowed:    metav1.StatusReasonMethodNotAllowed,
	http.StatusConflict:            metav1.StatusReasonConflict,
	http.StatusGone:                metav1.StatusReasonExpired,
	http.StatusUnprocessableEntity: metav1.StatusReasonInvalid,
	http.StatusTooManyRequests:     metav1.StatusReasonTooManyRequests,
	http.StatusServiceUnavailable:  metav1.StatusReasonServiceUnavailable,
	http.StatusGatewayTimeout:      metav1.StatusReasonTimeout,
}

func reasonOf(code int) metav1.StatusReason {
	if reason, known := reasons[code]; known {
		return reason
	}
	return metav1.StatusReasonInternalError
}
