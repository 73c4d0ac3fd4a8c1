package monitor

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Reads knows when the client of whole caches last read all objects of a
// resource. A cache of objects that do not change reads the same version again.
type Reads struct {
	mu   sync.Mutex
	last map[schema.GroupResource]time.Time
}

// Wrap returns a transport whose reads are noted.
func (r *Reads) Wrap(next http.RoundTripper) http.RoundTripper { return &noted{next, r} }

func (r *Reads) note(id schema.GroupResource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == nil {
		r.last = map[schema.GroupResource]time.Time{}
	}
	r.last[id] = time.Now()
}

func (r *Reads) since(id schema.GroupResource) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last[id]
}

type noted struct {
	next  http.RoundTripper
	reads *Reads
}

// RoundTrip sends a request.
func (n *noted) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := n.next.RoundTrip(req)
	id, ok := listed(req.URL.Path)
	query := req.URL.Query()
	streamed := query.Get("sendInitialEvents") == "true"
	switch {
	case err != nil || !ok || req.Method != http.MethodGet || response.StatusCode != http.StatusOK:
	case streamed || !query.Has("watch") && !query.Has("limit"): // a page is not the whole list
		response.Body = &notedBody{ReadCloser: response.Body, streamed: streamed, done: sync.OnceFunc(func() { n.reads.note(id) })}
	}
	return response, err
}

// WrappedRoundTripper is the transport below, for those who look for its connections.
func (n *noted) WrappedRoundTripper() http.RoundTripper { return n.next }

// listed returns which resource a path lists in all namespaces.
func listed(path string) (schema.GroupResource, bool) {
	parts := strings.Split(path, "/")
	n := len(parts)
	switch {
	case n > 3 && parts[n-4] == "apis":
		return schema.GroupResource{Group: parts[n-3], Resource: parts[n-1]}, true
	case n > 2 && parts[n-3] == "api":
		return schema.GroupResource{Resource: parts[n-1]}, true
	}
	return schema.GroupResource{}, false
}

// notedBody calls done when a list has been read to its end. That of a streamed
// one is an event in the stream.
type notedBody struct {
	io.ReadCloser
	streamed bool
	found    bool
	tail     []byte
	done     func()
}

var endOfList = []byte(metav1.InitialEventsAnnotationKey)

// Read reads on.
func (b *notedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	switch {
	case !b.streamed:
		if errors.Is(err, io.EOF) {
			b.done()
		}
	case !b.found:
		b.tail = append(b.tail, p[:n]...)
		if b.found = bytes.Contains(b.tail, endOfList); b.found {
			b.tail = nil
			b.done()
		} else if more := len(b.tail) - len(endOfList); more > 0 {
			b.tail = append(b.tail[:0], b.tail[more:]...)
		}
	}
	return n, err
}
