package certificates

import (
	"time"

	"k8s.io/client-go/util/workqueue"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// Queue names the work queues of the controllers that act on requests.
	Queue = "certificate"
	// Workers is how many requests each of these queues works on at once.
	Workers = 5

	firstRetry, longestRetry = 200 * time.Millisecond, 1000 * time.Second
)

// Retries spaces the retries of requests, each for itself and all together.
func Retries() workqueue.TypedRateLimiter[string] {
	return runner.Retries[string](firstRetry, longestRetry)
}
