package cache

import (
	"slices"
	"sync"

	toolscache "k8s.io/client-go/tools/cache"
)

// shared is an informer that calls all its handlers on one goroutine, one after the other.
// The library has two goroutines and two channels for each handler, which cost more than
// most handlers do. A handler that is added after the first event has those of the library,
// which delivers it what it missed.
type shared struct {
	toolscache.SharedIndexInformer

	mu       sync.Mutex
	all      toolscache.ResourceEventHandlerRegistration // nil until there is a handler
	handlers []*handler
	begun    bool // an event was delivered
}

// handler is one of a shared informer's, and its registration.
type handler struct {
	toolscache.ResourceEventHandler
	toolscache.ResourceEventHandlerRegistration
}

// AddEventHandler adds a handler, which must not wait for another one.
func (s *shared) AddEventHandler(h toolscache.ResourceEventHandler) (_ toolscache.ResourceEventHandlerRegistration, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.begun {
		return s.SharedIndexInformer.AddEventHandler(h)
	}
	if s.all == nil {
		if s.all, err = s.SharedIndexInformer.AddEventHandler(each{s}); err != nil {
			return nil, err
		}
	}
	added := &handler{h, s.all}
	s.handlers = append(s.handlers, added)
	return added, nil
}

// AddSlowHandler adds a handler that may wait, for a lock for example, on goroutines of its
// own: the others are not to wait with it.
func (s *shared) AddSlowHandler(h toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return s.SharedIndexInformer.AddEventHandler(h)
}

// RemoveEventHandler calls a handler no more, but for an event that is on its way.
func (s *shared) RemoveEventHandler(registration toolscache.ResourceEventHandlerRegistration) error {
	removed, ok := registration.(*handler)
	if !ok {
		return s.SharedIndexInformer.RemoveEventHandler(registration)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	rest := slices.Clone(s.handlers) // an event may be on its way along the old ones
	s.handlers = slices.DeleteFunc(rest, func(h *handler) bool { return h == removed })
	return nil
}

// each passes an event on to each handler.
type each struct{ s *shared }

func (e each) handlers() []*handler {
	e.s.mu.Lock()
	defer e.s.mu.Unlock()
	e.s.begun = true
	return e.s.handlers
}

func (e each) OnAdd(obj any, initial bool) {
	for _, h := range e.handlers() {
		h.OnAdd(obj, initial)
	}
}

func (e each) OnUpdate(before, now any) {
	for _, h := range e.handlers() {
		h.OnUpdate(before, now)
	}
}

func (e each) OnDelete(obj any) {
	for _, h := range e.handlers() {
		h.OnDelete(obj)
	}
}
