package replicas

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// errLate tells that a create whose answer was lost did make a pod, which the
// cache does not show yet.
var errLate = errors.New("waiting for the cache to show pods of an earlier attempt")

// doubts are the sets for which the answer to a create was lost: the pod may
// exist although the call failed. The zero value has none.
type doubts struct {
	mu   sync.Mutex
	keys map[Key]bool
}

func (d *doubts) raise(key Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.keys == nil {
		d.keys = map[Key]bool{}
	}
	d.keys[key] = true
}

func (d *doubts) about(key Key) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.keys[key]
}

func (d *doubts) settle(key Key) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.keys, key)
}

// outcomeUnknown tells whether a failed call may have been carried out.
func outcomeUnknown(err error) bool {
	return apierrors.IsTimeout(err) || apierrors.IsServerTimeout(err) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		utilnet.IsTimeout(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err) || utilnet.IsHTTP2ConnectionLost(err)
}

// lookForLate lists live, when a create of the set may have been carried out
// without an answer, and fails while the cache does not show what is there. The
// runner holds the set back meanwhile, so no pod is made a second time.
func (e *Engine) lookForLate(ctx context.Context, key Key, set *Set) error {
	if !e.doubts.about(key) {
		return nil
	}
	live, err := e.client.CoreV1().Pods(key.Namespace).List(ctx, metav1.ListOptions{LabelSelector: set.Selector.String()})
	if err != nil {
		return fmt.Errorf("look for pods of an earlier attempt: %w", err)
	}
	for i := range live.Items {
		if pod := &live.Items[i]; set.owns(pod) {
			e.writes.Wrote(key, podResource, pod)
		}
	}
	e.doubts.settle(key)
	if len(e.writes.Behind(key)) > 0 {
		return errLate
	}
	return nil
}
