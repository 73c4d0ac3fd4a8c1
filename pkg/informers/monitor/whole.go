package monitor

import (
	"context"

	"k8s.io/client-go/tools/cache"
)

// Hear lets the Set know how the reads of a cache go that Options.Whole may
// return. It is called before the cache is started.
func (s *Set) Hear(whole cache.SharedIndexInformer) error {
	h := newHealth(s.o.Clock)
	h.version = whole.LastSyncResourceVersion
	err := whole.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
		cache.DefaultWatchErrorHandler(ctx, r, err) // the log
		if ctx.Err() == nil {
			h.fail(err)
			s.poke()
		}
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.heard[whole] = h
	return nil
}

// healthOf returns what became of the reads of a whole cache. One that is not
// heard of counts as read.
func (s *Set) healthOf(whole cache.SharedIndexInformer) *health {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.heard[whole]; h != nil {
		return h
	}
	return newHealth(s.o.Clock)
}
