// Package testworld is a small in-memory world in which pure plans are run
// against each other in an order shuffled by a seed, with invariants checked
// after every step and a transcript to read when one breaks.
package testworld

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Actor takes one step on the world and says in a few words what it did; an
// empty string means that it had nothing to do.
type Actor struct {
	Name string
	Step func() string
}

// Invariant returns what is broken, or an empty string.
type Invariant func() string

// World steps its actors in a seeded order.
type World struct {
	// Rand is the world's only source of chance.
	Rand       *rand.Rand
	actors     []Actor
	invariants []Invariant
	transcript []string
}

// New returns an empty world; the same seed gives the same run.
func New(seed uint64) *World {
	return &World{Rand: rand.New(rand.NewPCG(seed, seed))}
}

// Add puts actors into the world.
func (w *World) Add(actors ...Actor) { w.actors = append(w.actors, actors...) }

// Always adds invariants that must hold after every step.
func (w *World) Always(invariants ...Invariant) { w.invariants = append(w.invariants, invariants...) }

// Note adds a line to the transcript.
func (w *World) Note(format string, args ...any) {
	w.transcript = append(w.transcript, fmt.Sprintf(format, args...))
}

// Run steps randomly chosen actors until a full round in which none has
// anything to do. It fails when an invariant breaks or the limit of steps is
// reached first; the error holds the transcript.
func (w *World) Run(limit int) error {
	steps := 0
	for idle := 0; idle < len(w.actors); {
		// A run of random picks, then a full shuffled round to prove that all is settled.
		order := w.Rand.Perm(len(w.actors))
		idle = 0
		for _, i := range order {
			did := w.actors[i].Step()
			if did == "" {
				idle++
				continue
			}
			w.Note("%4d %s: %s", steps, w.actors[i].Name, did)
			for _, broken := range w.invariants {
				if what := broken(); what != "" {
					return fmt.Errorf("step %d: %s\n%s", steps, what, w.Transcript())
				}
			}
			if steps++; steps > limit {
				return fmt.Errorf("not settled after %d steps\n%s", limit, w.Transcript())
			}
			if w.Rand.IntN(3) == 0 {
				break // start over in another order, so that some actors fall behind
			}
		}
	}
	return nil
}

// Transcript is what happened, one step a line.
func (w *World) Transcript() string { return strings.Join(w.transcript, "\n") }
