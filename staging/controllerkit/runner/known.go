package runner

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Known is what a loop knows of one key, with times where a KeySnapshot has durations.
// A time is zero when there is none.
type Known struct {
	// Loop is the name of the loop, and Key the printed key.
	Loop, Key string
	// InFlightSince is since when a worker has been on the key.
	InFlightSince time.Time
	// Failures counts the failures in a row; LastError is the error of the last one.
	Failures  int
	LastError string
	// GaveUp: the key is not tried again until its object changes.
	GaveUp bool
	// LastLook is when the last reconcile ended, NextTry and NextLook when the next one
	// begins after a failure and without one.
	LastLook, NextTry, NextLook time.Time
	// WaitingFor is what the key wrote and the caches do not show yet.
	WaitingFor []string
	// Paused is why the key, or what it would write, waits until somebody resumes it.
	Paused string
	// Braked is why some of what it would write waits for its turn, which is at NextTry.
	Braked string
	// Decisions are those of Options.Decisions, Plan is what came with the last Result.
	Decisions, Plan any
}

// Known returns what the loop knows of the key with this printed form: one value, or none.
func (r *Runner[K]) Known(printed string) []Known {
	key, known, ok := r.book.known(printed)
	if held, why := r.withheld.find(printed); why != nil {
		key, ok, known.Key = held, true, printed
		if known.Paused = why.Why; !why.Until.IsZero() {
			known.Paused, known.Braked, known.NextTry = "", why.Why, why.Until
		}
	}
	if !ok {
		return nil
	}
	known.Loop = r.o.Name
	if r.o.Decisions != nil {
		known.Decisions = r.o.Decisions(key)
	}
	return []Known{known}
}

// Known returns what each of the loops knows of the key.
func (g *Group) Known(printed string) []Known {
	var all []Known
	for _, loop := range g.loops {
		all = append(all, loop.Known(printed)...)
	}
	return all
}

func (b *book[K]) known(printed string) (K, Known, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	key, m, ok := b.search(printed)
	if !ok {
		return key, Known{}, false
	}
	now := b.clock.Now()
	known := Known{Key: printed, Failures: m.failures, LastError: m.err, GaveUp: m.gaveUp, LastLook: m.last, Plan: m.plan}
	if f, ok := b.inFlight[key]; ok {
		known.InFlightSince = f.since
	}
	if m.nextTry.After(now) {
		known.NextTry = m.nextTry
	}
	if m.nextLook.After(now) {
		known.NextLook = m.nextLook
	}
	known.WaitingFor = waitingFor(m.held, now)
	return key, known, true
}

// search finds a key by its printed form: at once where the form can be read, and by
// printing all known keys where it cannot.
func (b *book[K]) search(printed string) (K, *memory, bool) {
	if key, ok := parse[K](printed); ok {
		_, flies := b.inFlight[key]
		_, troubled := b.trouble[key]
		_, settled := b.settled[key]
		return key, b.of(key), flies || troubled || settled
	}
	for key := range b.inFlight {
		if format(key) == printed {
			return key, b.of(key), true
		}
	}
	for _, known := range []map[K]*memory{b.trouble, b.settled} {
		for key, m := range known {
			if format(key) == printed {
				return key, m, true
			}
		}
	}
	var none K
	return none, nil, false
}

// parse is the reverse of format, for keys that are names.
func parse[K comparable](printed string) (K, bool) {
	var key K
	switch k := any(&key).(type) {
	case *string:
		*k = printed
		return key, true
	case *types.NamespacedName:
		namespace, name, namespaced := strings.Cut(printed, "/")
		if !namespaced {
			namespace, name = "", printed
		}
		*k = types.NamespacedName{Namespace: namespace, Name: name}
		return key, true
	}
	return key, false
}
