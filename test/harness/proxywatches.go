package harness

import (
	"context"
	"encoding/json"
	"net/http"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// openWatch is a watch that is running.
type openWatch struct {
	asked  Asked
	stream string
	cancel context.CancelFunc
}

// streamOf is the same for the watches that one cache holds one after the other.
func streamOf(r *http.Request) string {
	query := r.URL.Query()
	stream := r.UserAgent() + " " + r.Header.Get("Authorization") + " " + r.Header.Get("Accept") + " " + r.URL.Path
	for _, key := range []string{"labelSelector", "fieldSelector"} {
		stream += " " + query.Get(key)
	}
	return stream
}

// watching registers a watch, or reports that it is to be answered as too old.
func (p *Proxy) watching(r *http.Request) (ctx context.Context, done func(), expired bool) {
	if r.URL.Query().Get("watch") != "true" && r.URL.Query().Get("watch") != "1" {
		return r.Context(), func() {}, false
	}
	ctx, cancel := context.WithCancel(r.Context())
	open := &openWatch{asked: AskedOf(r), stream: streamOf(r), cancel: cancel}
	p.mu.Lock()
	defer p.mu.Unlock()
	if open.asked.Verb == "watch" && p.expired[open.stream] {
		delete(p.expired, open.stream)
		p.hit++
		return ctx, cancel, true
	}
	p.watches[open] = true
	return context.WithValue(ctx, watchKey{}, open), func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.watches, open)
	}, false
}

// CutWatches ends the running watches of these resources, as Asked.Is takes
// them, and returns how many there were.
func (p *Proxy) CutWatches(resources []string) int { return p.endWatches(resources, false) }

// ExpireWatches ends them too, and answers their next ones that they are too old,
// so that all objects are listed again.
func (p *Proxy) ExpireWatches(resources []string) int { return p.endWatches(resources, true) }

func (p *Proxy) endWatches(resources []string, expire bool) (ended int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for open := range p.watches {
		if !open.asked.Is(resources) {
			continue
		}
		if expire {
			p.expired[open.stream] = true
		}
		open.cancel()
		ended++
	}
	return ended
}

// answerExpired answers a watch as the API server does one that begins too long ago.
func answerExpired(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json;stream=watch")
	w.WriteHeader(http.StatusOK)
	_ = json.NewEncoder(w).Encode(map[string]any{"type": "ERROR", "object": metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Code: http.StatusGone, Reason: metav1.StatusReasonExpired, Message: "too old resource version: 1 (2)"}})
}

// answerAbsent answers as the API server does where there is no such resource, or
// no such verb of it.
func answerAbsent(w http.ResponseWriter, code int) {
	if code != http.StatusNotFound {
		answerStatus(w, code, metav1.StatusReasonMethodNotAllowed, "the server does not allow this method on the requested resource")
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Audit-Id", "absent-on-the-way")
	w.WriteHeader(code)
	_, _ = w.Write([]byte("404 page not found\n"))
}
