package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"
)

// tunnel is a port of this machine that leads to a port of a pod. The manager listens on
// the loopback address of its node in most installations, which only the kubelet reaches.
type tunnel struct {
	// address is that of this end.
	address string
	close   func()

	mu   sync.Mutex
	said []string
}

// trouble is what the other end says of connections that failed.
func (t *tunnel) trouble() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(t.said, "; ")
}

// hear takes the errors that the library has nobody to return to.
func (t *tunnel) hear(_ context.Context, err error, what string, _ ...any) {
	if err == nil {
		err = errors.New(what)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.said = append(t.said, err.Error())
}

// forward opens a tunnel through the API server and the kubelet of the pod.
func forward(ctx context.Context, user *rest.Config, client kubernetes.Interface, namespace, pod string, port int) (*tunnel, error) {
	dialer, err := dialerTo(user, client, namespace, pod)
	if err != nil {
		return nil, err
	}
	t := &tunnel{}
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{t.hear}
	stop, ready := make(chan struct{}), make(chan struct{})
	forwarder, err := portforward.NewOnAddressesForStreaming(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, stop, ready, io.Discard, io.Discard)
	if err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	t.close = sync.OnceFunc(func() { close(stop); <-ended })
	select {
	case <-ready:
	case err := <-ended:
		return nil, err
	case <-ctx.Done():
		close(stop)
		return nil, ctx.Err()
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		t.close()
		return nil, err
	}
	t.address = fmt.Sprintf("https://127.0.0.1:%d", ports[0].Local)
	return t, nil
}

// dialerTo connects as kubectl does: over a WebSocket, and where that is not known by SPDY.
func dialerTo(user *rest.Config, client kubernetes.Interface, namespace, pod string) (httpstream.Dialer, error) {
	url := client.CoreV1().RESTClient().Post().Resource("pods").Namespace(namespace).Name(pod).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(user)
	if err != nil {
		return nil, err
	}
	web, err := portforward.NewSPDYOverWebsocketDialerForStreaming(url, user)
	if err != nil {
		return nil, err
	}
	old := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, url)
	return portforward.NewFallbackDialerForStreaming(web, old, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}
