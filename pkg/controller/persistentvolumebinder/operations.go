package persistentvolumebinder

import (
	"fmt"
	"maps"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// firstPause and lastPause bound how long an operation is not started again that failed.
	firstPause = 500 * time.Millisecond
	lastPause  = 2*time.Minute + 2*time.Second
	// mostRecycled is how many volumes are recycled at once. A pod that finds no node takes
	// its time, and what is deleted must not wait for it.
	mostRecycled = atOnce / 2
)

// operationKind is what an operation does.
type operationKind string

const (
	deletes    operationKind = "delete"
	recycles   operationKind = "recycle"
	provisions operationKind = "provision"
)

// operation is what a plugin does beside the reconciles; there is one of a name at a time.
type operation struct {
	Kind operationKind
	// Volume is what is deleted or recycled.
	Volume string
	// Claim is what a volume is provisioned for.
	Claim types.NamespacedName
	// UID is of the volume or the claim.
	UID types.UID
}

func (op operation) String() string {
	if op.Kind == provisions {
		return fmt.Sprintf("%s-%s[%s]", op.Kind, op.Claim, op.UID)
	}
	return fmt.Sprintf("%s-%s[%s]", op.Kind, op.Volume, op.UID)
}

// ledger is which operations run, and which must not be started again yet. It is
// forgotten at a restart.
type ledger struct {
	mu      sync.Mutex
	running map[operation]bool
	paused  map[operation]pause
	// swept is when pauses were last looked through for those that are long over.
	swept time.Time
	// failures are to be reported by the key of their volume, as long as it has the claim of
	// that time.
	failures map[types.UID]reportable
	// emptied are the volumes that were recycled, with the UID of the claim that they had.
	emptied map[types.UID]types.UID
}

// reportable is the failure of an operation on a volume that this claim had left.
type reportable struct {
	failure
	claim types.UID
}

type pause struct {
	until time.Time
	last  time.Duration
}

func newLedger() *ledger {
	return &ledger{running: map[operation]bool{}, paused: map[operation]pause{}, failures: map[types.UID]reportable{}, emptied: map[types.UID]types.UID{}}
}

// begin reports whether an operation may start now, and notes that it does.
func (l *ledger) begin(op operation, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.running[op] || now.Before(l.paused[op].until) || op.Kind == recycles && l.recycled() >= mostRecycled {
		return false
	}
	l.running[op] = true
	return true
}

// run notes that an operation runs, also one that was held back since it has begun.
func (l *ledger) run(op operation) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[op] = true
}

// pauses reports whether an operation has failed a moment ago.
func (l *ledger) pauses(op operation, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return now.Before(l.paused[op].until)
}

// recycled is how many volumes are being recycled.
func (l *ledger) recycled() (n int) {
	for op := range l.running {
		if op.Kind == recycles {
			n++
		}
	}
	return n
}

// end notes that an operation has ended. One that failed pauses, ever longer.
func (l *ledger) end(op operation, failed bool, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, op)
	if !failed {
		delete(l.paused, op)
		return
	}
	wait := firstPause
	if last := l.paused[op].last; last > 0 {
		wait = min(2*last, lastPause)
	}
	l.paused[op] = pause{until: now.Add(wait), last: wait}
	if now.Sub(l.swept) > lastPause { // an operation may end after its claim has gone
		l.swept = now
		maps.DeleteFunc(l.paused, func(other operation, p pause) bool { return !l.running[other] && now.Sub(p.until) > lastPause })
	}
}

// failed has the key of a volume report that its operation failed.
func (l *ledger) failed(volume, claim types.UID, f failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failures[volume] = reportable{f, claim}
}

// empty notes that a volume was recycled after a claim.
func (l *ledger) empty(volume, claim types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.emptied[volume] = claim
}

// of returns what is to be reported of a volume, and whether it was emptied after this claim.
func (l *ledger) of(volume, claim types.UID) (*failure, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var failed *failure
	if r, is := l.failures[volume]; is && r.claim == claim {
		failed = &r.failure
	}
	after, emptied := l.emptied[volume]
	return failed, emptied && after == claim
}

// reported forgets what has been reported of a volume.
func (l *ledger) reported(volume types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failures, volume)
}

// forget drops all that is known of a volume or a claim that is gone.
func (l *ledger) forget(uid types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.failures, uid)
	delete(l.emptied, uid)
	maps.DeleteFunc(l.paused, func(op operation, _ pause) bool { return op.UID == uid })
}
