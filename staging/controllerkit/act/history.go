package act

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// kept is how many decisions of one key are remembered, and keptInAll those of all keys.
	kept, keptInAll = 10, 2048
	// named is how many objects of a kind a decision names.
	named = 5
)

// Decision is one plan of a key and what became of it, in words.
type Decision struct {
	At  time.Time `json:"at"`
	Why string    `json:"why"`
	// Steps are what was planned, by verb and kind.
	Steps []string `json:"steps,omitempty"`
	// Became is what became of the steps; "under way" until it has.
	Became []string `json:"became,omitempty"`
	// Again counts further decisions that were the same, the last one at LastAt.
	Again  int       `json:"again,omitempty"`
	LastAt time.Time `json:"lastAt,omitzero"`

	number uint64
}

// history keeps the latest decisions of the keys. It is safe for concurrent use.
type history[K comparable] struct {
	clock clock.PassiveClock

	mu   sync.Mutex
	keys map[K][]*Decision
	ring []slot[K] // of all keys, the oldest at next once it is full
	next uint64
}

// slot is the place of one decision among those of all keys.
type slot[K comparable] struct {
	key    K
	number uint64
}

func newHistory[K comparable](c clock.PassiveClock) *history[K] {
	return &history[K]{clock: c, keys: map[K][]*Decision{}}
}

// begin records a plan before it is carried out.
func (h *history[K]) begin(key K, p Plan) *Decision {
	d := &Decision{At: h.clock.Now(), Why: p.Why, Became: []string{"under way"}}
	d.Steps = inWords(notBegun(p.Stages), func(r Result) string { return wordOf(r.Step) + " " + KindOf(r.Step.About()) })
	h.mu.Lock()
	defer h.mu.Unlock()
	h.next++
	d.number = h.next
	if len(h.ring) < keptInAll {
		h.ring = append(h.ring, slot[K]{key, d.number})
	} else {
		place := &h.ring[(h.next-1)%keptInAll]
		h.drop(*place)
		*place = slot[K]{key, d.number}
	}
	h.keys[key] = append(h.keys[key], d)
	if len(h.keys[key]) > kept {
		h.keys[key] = slices.Delete(h.keys[key], 0, 1)
	}
	return d
}

// drop forgets the decision that had this place.
func (h *history[K]) drop(old slot[K]) {
	if of := h.keys[old.key]; len(of) > 0 && of[0].number == old.number {
		if h.keys[old.key] = of[1:]; len(of) == 1 {
			delete(h.keys, old.key)
		}
	}
}

// end records what became of a plan. One like that before it is only counted.
func (h *history[K]) end(key K, d *Decision, results Results) {
	became := inWords(results, func(r Result) string {
		words := wordOf(r.Step) + " " + KindOf(r.Step.About()) + ": " + string(r.Became)
		if r.Err != nil {
			words += ": " + r.Err.Error()
		}
		return words
	})
	h.mu.Lock()
	defer h.mu.Unlock()
	d.Became = became
	of := h.keys[key]
	if len(of) < 2 || of[len(of)-1] != d {
		return
	}
	before := of[len(of)-2]
	if before.Why == d.Why && slices.Equal(before.Steps, d.Steps) && slices.Equal(before.Became, d.Became) {
		before.Again++
		before.LastAt = d.At
		h.keys[key] = of[:len(of)-1]
	}
}

func (h *history[K]) of(key K) []Decision {
	h.mu.Lock()
	defer h.mu.Unlock()
	decisions := make([]Decision, 0, len(h.keys[key]))
	for _, d := range h.keys[key] {
		decisions = append(decisions, *d)
	}
	return decisions
}

// inWords lists results, those with the same words as one line with some names.
func inWords(results Results, words func(Result) string) []string {
	var order []string
	names := map[string][]string{}
	for _, r := range results {
		w := words(r)
		if names[w] == nil {
			order = append(order, w)
		}
		names[w] = append(names[w], nameOf(r.Step.About()))
	}
	lines := make([]string, 0, len(order))
	for _, w := range order {
		of, more := names[w], ""
		if len(of) > named {
			of, more = of[:named], fmt.Sprintf(" and %d more", len(of)-named)
		}
		lines = append(lines, w+" ["+strings.Join(of, " ")+"]"+more)
	}
	return lines
}

// nameOf is the name of an object, or how the API server will begin it.
func nameOf(o client.Object) string {
	if o.GetName() == "" {
		return o.GetGenerateName() + "*"
	}
	return o.GetName()
}

// TakeBecause is Take with a record of the step, of why, and of what became of it, for
// a controller that goes on by each answer.
func (a *Actor[K]) TakeBecause(ctx context.Context, key K, why string, step Step) Result {
	decision := a.history.begin(key, Plan{Why: why, Stages: Stages(step)})
	result := a.Take(ctx, key, step)
	a.history.end(key, decision, Results{result})
	return result
}
