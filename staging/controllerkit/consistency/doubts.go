package consistency

import (
	"context"
	"errors"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// Doubts are the keys for which the answer to a create was lost: the object may
// exist although the call failed, and the tracker knows nothing of it. Who has
// doubts looks live before it creates again. The zero value has none; it is safe
// for concurrent use.
type Doubts[K comparable] struct {
	mu   sync.Mutex
	keys map[K]bool
}

// Raise notes that the outcome of a create of key is unknown.
func (d *Doubts[K]) Raise(key K) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.keys == nil {
		d.keys = map[K]bool{}
	}
	d.keys[key] = true
}

// About tells whether there are doubts about key.
func (d *Doubts[K]) About(key K) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.keys[key]
}

// Settle ends the doubts about key.
func (d *Doubts[K]) Settle(key K) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.keys, key)
}

// OutcomeUnknown tells whether a failed call may have been carried out.
func OutcomeUnknown(err error) bool {
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		utilnet.IsTimeout(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}
