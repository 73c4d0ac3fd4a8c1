package certificates

import (
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/workqueue"
)

const (
	// Queue names the work queues of the controllers that act on requests.
	Queue = "certificate"
	// Workers is how many requests each of these queues works on at once.
	Workers = 5

	firstRetry, longestRetry = 200 * time.Millisecond, 1000 * time.Second
	retriesPerSecond         = 10
	retryBurst               = 100
)

// Retries spaces the retries of requests, each for itself and all together.
func Retries() workqueue.TypedRateLimiter[string] {
	return workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[string](firstRetry, longestRetry),
		&workqueue.TypedBucketRateLimiter[string]{Limiter: rate.NewLimiter(retriesPerSecond, retryBurst)},
	)
}
