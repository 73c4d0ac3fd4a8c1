package transport

import (
	"math/rand/v2"
	"net/http"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

// retryEvery is about how often a cache tries to reach an API server that is down.
const retryEvery = 500 * time.Millisecond

// above is what transports have in common that send requests by another one.
type above struct{ next http.RoundTripper }

// WrappedRoundTripper is the transport below, for those who look for its connections.
func (a above) WrappedRoundTripper() http.RoundTripper { return a.next }

// patient holds the reads of the caches while nobody listens at the API server's
// address. Left to themselves the caches double their wait with every refused
// connection, so a controller would work on old objects for up to a minute after an
// outage of some seconds.
type patient struct {
	above
	server string
	logger klog.Logger
	// away is shared by the connections of one client, so that an outage is logged once.
	away *atomic.Bool
}

// Reads returns a copy of the configuration of a client of caches. Its reads
// wait for the API server, and its watches do not hammer it.
func Reads(config *rest.Config, logger klog.Logger) *rest.Config {
	config = rest.CopyConfig(config)
	away, server := &atomic.Bool{}, config.Host
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return &patient{above{spacedOut(next)}, server, logger, away}
	})
	return config
}

// RoundTrip sends a request, and a read again and again until the server
// accepts the connection or the request is given up.
func (p *patient) RoundTrip(req *http.Request) (*http.Response, error) {
	for {
		response, err := p.next.RoundTrip(req)
		if err == nil || req.Method != http.MethodGet || !utilnet.IsConnectionRefused(err) {
			if err == nil && p.away.CompareAndSwap(true, false) {
				p.logger.Info("The API server can be reached again", "server", p.server)
			}
			return response, err
		}
		if p.away.CompareAndSwap(false, true) {
			p.logger.Info("The API server cannot be reached; the caches wait for it", "server", p.server, "err", err)
		}
		if sleep(req.Context(), retryEvery+rand.N(retryEvery)) != nil {
			return nil, err
		}
	}
}
