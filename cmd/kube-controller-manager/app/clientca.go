package app

import (
	"k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/dynamiccertificates"
)

// changingCA is a client CA that follows a file or a ConfigMap.
type changingCA interface {
	dynamiccertificates.CAContentProvider
	dynamiccertificates.ControllerRunner
}

// steadyCA is a client CA that changes only once the secure port is open. Until then the
// library writes the TLS configuration, while another of its goroutines would copy it for a
// new CA: a data race (SecureServingInfo.Serve of k8s.io/apiserver 0.36).
type steadyCA struct {
	changingCA
	before   []byte
	open     chan struct{}
	listener dynamiccertificates.Listener
}

// steady returns serving with a steady client CA, and what lets that change.
func steady(serving server.SecureServingInfo) (_ *server.SecureServingInfo, opened func()) {
	ca, is := serving.ClientCA.(changingCA)
	if !is {
		return &serving, func() {}
	}
	c := &steadyCA{changingCA: ca, before: ca.CurrentCABundleContent(), open: make(chan struct{})}
	serving.ClientCA = c
	return &serving, func() {
		close(c.open)
		c.listener.Enqueue()
	}
}

// AddListener adds the listener that is notified of changes, here also once the port is open.
func (c *steadyCA) AddListener(l dynamiccertificates.Listener) {
	c.listener = l
	c.changingCA.AddListener(l)
}

// CurrentCABundleContent returns the content at the start until the port is open, and then
// the current one.
func (c *steadyCA) CurrentCABundleContent() []byte {
	select {
	case <-c.open:
		return c.changingCA.CurrentCABundleContent()
	default:
		return c.before
	}
}
