package act

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
)

const (
	// soonest and latest bound how long a key waits for its turn to delete.
	soonest, latest = time.Second, time.Minute
	// atOnce is which part of a minute's deletions may come at once.
	atOnce = 10
	// over is how long nothing must have been held back for a brake to begin once more.
	over = time.Minute
)

// DeleteRate is how many objects of a resource, in any group if it names none, are deleted
// in any minute; of all resources together when it is empty.
type DeleteRate struct {
	Resource  schema.GroupResource
	PerMinute int
}

// String names the rate as a user does.
func (r DeleteRate) String() string { return cmp.Or(r.Resource.String(), "all") }

func (r DeleteRate) covers(resource schema.GroupResource) bool {
	return r.Resource.Resource == "" || r.Resource == resource || r.Resource.Group == "" && r.Resource.Resource == resource.Resource
}

// Brake holds deletions back that are more than some rates allow. It is safe for
// concurrent use. In any minute no more objects are deleted than a rate says: a tenth of
// them may be saved up, and the others come one by one. It begins with none saved up, so
// that a restart, or another leader, does not add to what the process before has deleted.
type Brake struct {
	clock clock.PassiveClock
	// begins is called when deletions begin to be held back.
	begins func(DeleteRate)
	// held is called for each deletion that is held back.
	held func(DeleteRate)

	mu      sync.Mutex
	buckets []*bucket
}

// bucket is what one rate allows.
type bucket struct {
	DeleteRate
	tokens *rate.Limiter
	// turn is that of the next key that is held back, last when one was.
	turn, last time.Time
}

// NewBrake returns a brake. Begins is called when deletions begin to be held back by a
// rate, held for each of them; both are quick.
func NewBrake(c clock.PassiveClock, rates []DeleteRate, begins, held func(DeleteRate)) *Brake {
	b := &Brake{clock: c, begins: begins, held: held}
	for _, r := range rates {
		burst := max(r.PerMinute/atOnce, 1)
		tokens := rate.NewLimiter(rate.Limit(float64(r.PerMinute-burst+1)/60), burst)
		tokens.AllowN(c.Now(), burst)
		b.buckets = append(b.buckets, &bucket{DeleteRate: r, tokens: tokens})
	}
	return b
}

// Take takes as many deletions as there may be now, up to so many. If that is fewer, the
// error says why, and until when the caller waits for its turn to take the rest.
func (b *Brake) Take(resource schema.GroupResource, most int) (taken int, rest error) {
	if b == nil {
		return most, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock.Now()
	var by *bucket
	taken = most
	concerned := slices.DeleteFunc(slices.Clone(b.buckets), func(of *bucket) bool { return !of.covers(resource) })
	for _, of := range concerned {
		if free := max(int(of.tokens.TokensAt(now)), 0); free < taken {
			taken, by = free, of
		}
	}
	for _, of := range concerned {
		of.tokens.AllowN(now, taken)
	}
	if by == nil {
		return taken, nil
	}
	return taken, &consistency.Withheld{Why: fmt.Sprintf("deletions are held back: no more than %d a minute (%s)", by.PerMinute, by.DeleteRate), Until: b.hold(by, now)}
}

// Brakes reports whether there is a rate for a resource.
func (b *Brake) Brakes(resource schema.GroupResource) bool {
	return b != nil && slices.ContainsFunc(b.buckets, func(of *bucket) bool { return of.covers(resource) })
}

// hold counts a deletion that is held back, and returns the turn of its key: keys come
// back at the pace at which deletions are allowed.
func (b *Brake) hold(by *bucket, now time.Time) time.Time {
	if by.last.IsZero() || now.Sub(by.last) >= over {
		b.begins(by.DeleteRate)
	}
	by.last = now
	b.held(by.DeleteRate)
	turn := by.turn
	if earliest := now.Add(soonest); turn.Before(earliest) {
		turn = earliest
	}
	if turn.After(now.Add(latest)) {
		return now.Add(latest/2 + rand.N(latest/2)) // there are more than come to their turn in that time
	}
	by.turn = turn.Add(time.Duration(float64(time.Second) / float64(by.tokens.Limit())))
	return turn
}
