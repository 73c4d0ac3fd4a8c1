package runner

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/causes"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
)

const (
	defaultStuckAfter = 5 * time.Minute
	// defaultDrain is how long work in flight may go on after stop before its context is cancelled.
	defaultDrain = 10 * time.Second
)

// Options say how a runner runs. Name is required; the zero value of the rest
// gives the defaults named.
type Options[K comparable] struct {
	// Name is the controller's canonical name.
	Name string
	// Queue names the work queue in the workqueue_* metrics; Name by default.
	Queue string
	// Workers is how many keys are synced at once; 1 by default. SetWorkers changes it.
	Workers int
	// FixedWorkers leaves Workers as it is whatever SetWorkers is given; true where Workers is 0.
	FixedWorkers bool
	// Clock serves the queue's delays and every time the runner takes; the real one by default.
	Clock clock.WithTicker
	// RateLimiter spaces retries; client-go's default controller limiter by default.
	RateLimiter workqueue.TypedRateLimiter[K]
	// Order is the underlying storage of the queue; by default namespaces take
	// turns, and keys without one are first in, first out.
	Order workqueue.Queue[K]
	// Namespace is that in which a key is worked on, for a pause; by default that of a
	// NamespacedName, and none of other keys.
	Namespace func(K) string
	// MaxRetries drops a key after so many failures in a row until an event wakes it; 0 means no limit.
	MaxRetries int
	// Writes is where the controller records what a key wrote; nil checks nothing.
	Writes *consistency.Tracker[K]
	// Pace holds back a key that the controller has just spent much on, as it says
	// with Sent, so that one key does not use up a worker; nil holds back nothing.
	Pace *pace.Pacer[K]
	// Events and Object say where an event goes when a key is held for long; Object
	// returns nil for a key whose object is gone. Without them only the log shows it.
	Events EventRecorder
	Object func(K) runtime.Object
	// OnHeld is called when a key is held because caches are behind, for metrics.
	OnHeld func([]consistency.Behind)
	// Decisions returns the latest decisions about a key, which the debug endpoint
	// shows; it must be JSON-encodable. Nil shows what came with the last Result.
	Decisions func(K) any
	// Synced must all be true before the workers start, besides the watches.
	Synced []cache.InformerSynced
	// StuckAfter fails the health check when nothing that a worker asked for its key
	// was answered for longer (see [Answered]); 5 minutes by default.
	StuckAfter time.Duration
}

// Retries spaces the retries of each key by a wait that doubles from first to longest, and
// those of all keys as client-go's default controller limiter does: 10 a second after 100.
func Retries[K comparable](first, longest time.Duration) workqueue.TypedRateLimiter[K] {
	return workqueue.NewTypedMaxOfRateLimiter(
		workqueue.NewTypedItemExponentialFailureRateLimiter[K](first, longest),
		&workqueue.TypedBucketRateLimiter[K]{Limiter: rate.NewLimiter(10, 100)},
	)
}

// EventRecorder is the part of a record.EventRecorder that is needed here.
type EventRecorder interface {
	Event(object runtime.Object, eventtype, reason, message string)
}

// Sync brings one key to its wanted state. The context ends when the runner's
// time to drain is over.
type Sync[K comparable] func(ctx context.Context, key K) Result

// Runner runs Sync for queued keys.
type Runner[K comparable] struct {
	o      Options[K]
	drain  time.Duration
	sync   Sync[K]
	queue  workqueue.TypedRateLimitingInterface[K]
	synced []cache.InformerSynced
	book   *book[K]
	// waiting is the storage of the queue.
	waiting *waiting[K]
	// wakes are why its keys wait, where the process makes traces.
	wakes causes.Wakes[K]
	crew  *crew
	// looking is held by the worker that reads live what a key waits for.
	looking sync.Mutex

	withheld withheld[K]
}

// New returns a runner that is not running yet; watches are added first.
func New[K comparable](o Options[K], sync Sync[K]) *Runner[K] {
	o = withDefaults(o)
	waiting := newWaiting(o.Order, o.Clock)
	queue := workqueue.NewTypedWithConfig(workqueue.TypedQueueConfig[K]{Name: o.Queue, Clock: o.Clock, Queue: waiting})
	delaying := workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[K]{
		Name: o.Queue, Clock: o.Clock, Queue: queue})
	return &Runner[K]{
		o:       o,
		drain:   defaultDrain,
		sync:    sync,
		queue:   workqueue.NewTypedRateLimitingQueueWithConfig(o.RateLimiter, workqueue.TypedRateLimitingQueueConfig[K]{Name: o.Queue, Clock: o.Clock, DelayingQueue: delaying}),
		synced:  o.Synced,
		book:    newBook[K](o.Clock),
		waiting: waiting,
		crew:    &crew{wanted: o.Workers},
	}
}

func withDefaults[K comparable](o Options[K]) Options[K] {
	if o.Queue == "" {
		o.Queue = o.Name
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.RateLimiter == nil {
		o.RateLimiter = workqueue.DefaultTypedControllerRateLimiter[K]()
	}
	if o.Order == nil {
		o.Order = Fair(byNamespace[K])
	}
	if o.StuckAfter == 0 {
		o.StuckAfter = defaultStuckAfter
	}
	if o.Writes != nil {
		o.Writes.SetClock(o.Clock)
	}
	o.FixedWorkers = o.FixedWorkers || o.Workers == 0
	o.Workers = max(o.Workers, 1)
	return o
}

// Name is the controller's canonical name; with Check it makes the runner a
// healthz.HealthChecker.
func (r *Runner[K]) Name() string { return r.o.Name }

// LimitDrain sets how long work in flight may go on after stop; call it before Run.
func (r *Runner[K]) LimitDrain(d time.Duration) {
	if d > 0 {
		r.drain = d
	}
}

// Add queues key now.
func (r *Runner[K]) Add(key K) { r.queue.Add(key) }

// AddAfter queues key once d has passed.
func (r *Runner[K]) AddAfter(key K, d time.Duration) { r.queue.AddAfter(key, d) }

// Len is how many keys wait in the queue.
func (r *Runner[K]) Len() int { return r.queue.Len() }

// Run waits for the watched caches, then works until ctx ends, and returns when
// all work in flight has ended. Keys that wait are dropped at the end: the next
// process finds them from its own first list.
func (r *Runner[K]) Run(ctx context.Context) {
	logger := klog.FromContext(ctx).WithName(r.o.Name)
	ctx = klog.NewContext(ctx, logger)
	defer r.queue.ShutDown()
	logger.V(1).Info("Waiting for caches")
	if !cache.WaitForCacheSync(ctx.Done(), r.synced...) {
		return
	}
	defer r.heed()()
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	r.book.start()
	logger.V(1).Info("Started", "workers", r.crew.begin(r.worker(ctx, work)))
	<-ctx.Done()
	r.queue.ShutDown()
	stop := context.AfterFunc(r.afterDrain(work), cancel)
	defer stop()
	r.crew.end()
	logger.V(1).Info("Stopped")
}

// afterDrain returns a context that ends when the time to drain is over.
func (r *Runner[K]) afterDrain(work context.Context) context.Context {
	over, end := context.WithCancel(work)
	go func() {
		defer end()
		timer := r.o.Clock.NewTimer(r.drain)
		defer timer.Stop()
		select {
		case <-timer.C():
		case <-work.Done():
		}
	}()
	return over
}

// Check fails when nothing that a worker asked was answered for StuckAfter, and
// names the key. The log has each such key once, with the worker's stack.
func (r *Runner[K]) Check(*http.Request) error {
	return r.book.stuck(r.o.Name, r.o.StuckAfter)
}

// Started reports whether the caches were ready and the workers run.
func (r *Runner[K]) Started() bool { return r.book.started() }

// format prints a key as users write it; one without a namespace is only its name.
func format[K comparable](key K) string { return strings.TrimPrefix(fmt.Sprint(key), "/") }
