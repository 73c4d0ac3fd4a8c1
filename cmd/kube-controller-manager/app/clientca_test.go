package app

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/client-go/util/cert"
)

// nextCA is a client CA that changes as soon as it is asked to follow its source.
type nextCA struct {
	mu        sync.Mutex
	content   []byte
	next      []byte
	listeners []dynamiccertificates.Listener
}

func (c *nextCA) Name() string { return "next" }

func (c *nextCA) VerifyOptions() (x509.VerifyOptions, bool) { return x509.VerifyOptions{}, false }

func (c *nextCA) AddListener(l dynamiccertificates.Listener) { c.listeners = append(c.listeners, l) }

func (c *nextCA) CurrentCABundleContent() []byte {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.content
}

func (c *nextCA) RunOnce(context.Context) error { return nil }

func (c *nextCA) Run(context.Context, int) {
	c.mu.Lock()
	c.content = c.next
	c.mu.Unlock()
	for _, l := range c.listeners {
		l.Enqueue()
	}
}

// TestTheClientCAMayChangeWhileThePortIsOpened is for the race detector, which finds the
// race of the library in most runs; and the new CA has to get through.
func TestTheClientCAMayChangeWhileThePortIsOpened(t *testing.T) {
	pem, key, err := cert.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	own, err := dynamiccertificates.NewStaticCertKeyContent("own", pem, key)
	if err != nil {
		t.Fatal(err)
	}
	for range 5 {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		ca := &nextCA{next: pem}
		info, opened := steady(server.SecureServingInfo{Listener: listener, Cert: own, ClientCA: ca})
		stop := make(chan struct{})
		done, closed, err := info.Serve(http.NotFoundHandler(), time.Second, stop)
		if err != nil {
			t.Fatal(err)
		}
		opened()
		eventually(t, "the port to ask for certificates of the new CA", func() bool { return asksFor(t, listener.Addr().String()) > 0 })
		close(stop)
		<-done
		<-closed
	}
}

// asksFor is for how many CAs a server asks its clients for certificates.
func asksFor(t *testing.T, address string) (authorities int) {
	t.Helper()
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, GetClientCertificate: func(r *tls.CertificateRequestInfo) (*tls.Certificate, error) {
		authorities = len(r.AcceptableCAs)
		return &tls.Certificate{}, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	return authorities
}
