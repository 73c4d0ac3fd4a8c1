// Package debug serves what the controllers of a process know of themselves.
package debug

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
)

// State says whether a controller runs.
type State string

// The states of a controller.
const (
	Started  State = "started"
	Disabled State = "disabled"
	Skipped  State = "skipped"
	Waiting  State = "waiting"
)

// Controller is a row of the list.
type Controller struct {
	Name  string `json:"name"`
	State State  `json:"state"`
	// Why gives the reason for any state but started.
	Why string `json:"why,omitempty"`
	// PausedBy is why it writes nothing although it runs; empty when it may write.
	PausedBy string `json:"paused,omitempty"`
}

// Registry lists controllers and routes to their handlers. It is an
// http.Handler for everything below its prefix and safe for concurrent use.
type Registry struct {
	prefix string

	mu          sync.RWMutex
	controllers map[string]Controller
	handlers    map[string]http.Handler
	pausedBy    func(name string) string
}

// NewRegistry returns a registry served under prefix, which ends in a slash.
func NewRegistry(prefix string) *Registry {
	return &Registry{prefix: prefix, controllers: map[string]Controller{}, handlers: map[string]http.Handler{},
		pausedBy: func(string) string { return "" }}
}

// Set records the state of a controller and why it is so.
func (r *Registry) Set(name string, state State, why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.controllers[name] = Controller{Name: name, State: state, Why: why}
}

// PausedBy sets what knows why a controller writes nothing, empty when it may write.
func (r *Registry) PausedBy(why func(name string) string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pausedBy = why
}

// shown is a controller as it is now.
func (r *Registry) shown(c Controller) Controller {
	if c.Name != "" {
		c.PausedBy = r.pausedBy(c.Name)
	}
	return c
}

// Handle serves h at prefix+name and below it.
func (r *Registry) Handle(name string, h http.Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handlers[name] = h
}

// Find returns a controller and what serves its page; nil when nothing does.
func (r *Registry) Find(name string) (Controller, http.Handler) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.shown(r.controllers[name]), r.handlers[name]
}

// List returns all controllers by name.
func (r *Registry) List() []Controller {
	r.mu.RLock()
	defer r.mu.RUnlock()
	list := make([]Controller, 0, len(r.controllers))
	for _, c := range r.controllers {
		list = append(list, r.shown(c))
	}
	slices.SortFunc(list, func(a, b Controller) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// ServeHTTP shows the list at the prefix itself, and what a controller knows at its name.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	rest := strings.TrimPrefix(req.URL.Path, r.prefix)
	name, _, _ := strings.Cut(rest, "/")
	if name == "" {
		WriteJSON(w, http.StatusOK, r.List())
		return
	}
	controller, handler := r.Find(name)
	switch {
	case handler != nil:
		handler.ServeHTTP(w, req)
	case controller.Name != "" && rest == name:
		WriteJSON(w, http.StatusOK, controller)
	default:
		http.NotFound(w, req)
	}
}

// WriteJSON answers with a value, indented for people to read.
func WriteJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	_ = encoder.Encode(value)
}
