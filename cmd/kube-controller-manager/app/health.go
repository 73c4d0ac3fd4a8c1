package app

import (
	"context"
	"errors"
	"net/http"
	"sync"

	"k8s.io/apiserver/pkg/server/healthz"
	"k8s.io/apiserver/pkg/server/mux"
)

// checks serves one health path. Unlike the library's handler it takes checks
// after it was made, because controllers start late.
type checks struct {
	path string

	mu      sync.RWMutex
	checks  []healthz.HealthChecker
	handler http.Handler
}

func newChecks(path string) *checks {
	c := &checks{path: path}
	c.add()
	return c
}

// add appends checks; the path shows them in this order.
func (c *checks) add(more ...healthz.HealthChecker) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.checks = append(c.checks, more...)
	handler := mux.NewPathRecorderMux(c.path)
	healthz.InstallPathHandler(handler, c.path, c.checks...)
	c.handler = handler
}

// ServeHTTP runs all checks.
func (c *checks) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	c.mu.RLock()
	handler := c.handler
	c.mu.RUnlock()
	handler.ServeHTTP(w, req)
}

// healthOf fails when a worker of one of a controller's loops is stuck.
func healthOf(name string, loops []Loop) healthz.HealthChecker {
	return healthz.NamedCheck(name, func(req *http.Request) error {
		var errs []error
		for _, loop := range loops {
			errs = append(errs, loop.Check(req))
		}
		return errors.Join(errs...)
	})
}

// readinessOf fails until the caches of a controller are in and its workers
// run, and again once the controllers are stopping.
func readinessOf(ctx context.Context, name string, loops []Loop) healthz.HealthChecker {
	return healthz.NamedCheck(name, func(*http.Request) error {
		if ctx.Err() != nil {
			return errors.New("stopping")
		}
		for _, loop := range loops {
			if !loop.Started() {
				return errors.New("waiting for its caches")
			}
		}
		return nil
	})
}
