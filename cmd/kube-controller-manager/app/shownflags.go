package app

import (
	"maps"
	"net/http"
	"sync"

	"k8s.io/apiserver/pkg/server/flagz"
)

// shownFlags serves /flagz with what flags are set to now. The library keeps its first
// answer, so that it gets a new handler with each change.
type shownFlags struct {
	start flagz.Reader

	mu      sync.Mutex
	changed values
	handler http.Handler
}

// values are those of flags; they are a flagz.Reader.
type values map[string]string

// GetFlagz returns them.
func (v values) GetFlagz() map[string]string { return v }

func newShownFlags(start flagz.Reader) *shownFlags {
	return &shownFlags{start: start, changed: values{}}
}

// set shows another value of a flag.
func (s *shownFlags) set(flag, value string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changed[flag] = value
	s.handler = nil
}

// ServeHTTP answers at /flagz.
func (s *shownFlags) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.present().ServeHTTP(w, req)
}

func (s *shownFlags) present() http.Handler {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.handler == nil {
		now := values(maps.Clone(s.start.GetFlagz()))
		maps.Copy(now, s.changed)
		var made caught
		flagz.Install(&made, component, now)
		s.handler = made.handler
	}
	return s.handler
}

// caught takes a handler that is installed.
type caught struct{ handler http.Handler }

// Handle takes it.
func (c *caught) Handle(_ string, handler http.Handler) { c.handler = handler }
