package replicas

import (
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// errLate tells that a create whose answer was lost did make a pod, which the
// cache does not show yet.
var errLate = errors.New("waiting for the cache to show pods of an earlier attempt")

// lookForLate lists live, when a create of the set may have been carried out
// without an answer, and fails while the cache does not show what is there. The
// runner holds the set back meanwhile, so no pod is made a second time.
func (e *Engine) lookForLate(ctx context.Context, key Key, set *Set) error {
	if !e.doubts.About(key) {
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
	e.doubts.Settle(key)
	if len(e.writes.Behind(key)) > 0 {
		return errLate
	}
	return nil
}
