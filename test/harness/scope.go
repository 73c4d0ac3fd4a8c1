package harness

import (
	"slices"
	"testing"
)

// Scope is a test of which a part ends early: what was registered with Cleanup
// is done when End is called. It suits a control plane that only some need.
type Scope struct {
	testing.TB
	ends []func()
}

// NewScope begins a part of a test.
func NewScope(t testing.TB) *Scope { return &Scope{TB: t} }

// Cleanup registers what End is to do, the last first.
func (s *Scope) Cleanup(end func()) { s.ends = append(s.ends, end) }

// End does what was registered.
func (s *Scope) End() {
	for _, end := range slices.Backward(s.ends) {
		end()
	}
	s.ends = nil
}
