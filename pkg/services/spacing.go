package services

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Spacing spaces the reconciles of a Service that endpoints join: one of thousands
// of pods would be written for each of them. What takes an endpoint away, and every
// other change, does not wait, because traffic goes astray until it is written. It
// is safe for concurrent use.
type Spacing struct {
	pace *pace.Pacer[types.NamespacedName]

	mu     sync.Mutex
	urgent map[types.NamespacedName]struct{}
}

// NewSpacing returns a spacing by that clock, the real one by default.
func NewSpacing(c clock.PassiveClock) *Spacing {
	return &Spacing{
		pace:   pace.New[types.NamespacedName](c, pace.ServiceShare, pace.LongestService),
		urgent: map[types.NamespacedName]struct{}{},
	}
}

// AtOnce returns a wake whose keys do not wait for their turn.
func (s *Spacing) AtOnce(w runner.Wake[types.NamespacedName]) runner.Wake[types.NamespacedName] {
	return atOnce{w, s}
}

// Now is the time to give to Done.
func (s *Spacing) Now() time.Time { return s.pace.Now() }

// Wait is how long the Service has to wait still. The reconcile that may begin now
// answers all that was urgent.
func (s *Spacing) Wait(key types.NamespacedName) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.urgent[key]; ok {
		delete(s.urgent, key)
		return 0
	}
	return s.pace.Wait(key)
}

// Done notes that a reconcile that began at that time has ended. What failed is
// still to be done, and its retry does not wait for anything else.
func (s *Spacing) Done(key types.NamespacedName, began time.Time, err error) {
	if err != nil {
		s.mark(key)
		return
	}
	s.pace.Sent(key, began)
}

func (s *Spacing) mark(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.urgent[key] = struct{}{}
}

// atOnce marks a key before it is queued, so that the mark is there when it is taken.
type atOnce struct {
	runner.Wake[types.NamespacedName]
	spacing *Spacing
}

func (a atOnce) Add(key types.NamespacedName) {
	a.spacing.mark(key)
	a.Wake.Add(key)
}

func (a atOnce) AddAfter(key types.NamespacedName, d time.Duration) {
	a.spacing.mark(key)
	a.Wake.AddAfter(key, d)
}
