package transport

import (
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	// shortLived is a watch that ends so soon after it was opened that it counts as refused.
	shortLived = time.Second
	// firstGap and widestGap lie between the end of such a watch and the next one.
	firstGap  = 200 * time.Millisecond
	widestGap = 5 * time.Second
)

// spaced leaves growing gaps between watches that end at once. A cache whose version is
// too old lists and watches again without a pause, and gets the same answer for as long as
// the API server has trouble.
type spaced struct {
	above

	mu sync.Mutex
	// ended are the watches that ended at once last time, by path and query.
	ended map[string]ending
}

// ending is how the last watches of something ended.
type ending struct {
	// count is how many of them in turn ended at once.
	count int
	// next is when the next one may be opened.
	next time.Time
}

func spacedOut(next http.RoundTripper) http.RoundTripper {
	return &spaced{above: above{next}, ended: map[string]ending{}}
}

// RoundTrip sends a request. A watch waits until it is its time.
func (c *spaced) RoundTrip(req *http.Request) (*http.Response, error) {
	query := req.URL.Query()
	if watching := query.Get("watch"); req.Method != http.MethodGet || watching != "true" && watching != "1" {
		return c.next.RoundTrip(req)
	}
	key := req.URL.Path + "?" + query.Get("labelSelector") + "&" + query.Get("fieldSelector")
	if gap := time.Until(c.after(key)); gap > 0 {
		if err := sleep(req.Context(), gap); err != nil {
			return nil, err
		}
	}
	opened := time.Now()
	response, err := c.next.RoundTrip(req)
	switch {
	case err != nil:
		// Nobody has answered: the reflector decides when to try again.
	case response.StatusCode == http.StatusGone, response.StatusCode >= http.StatusInternalServerError:
		c.end(key, true)
	case response.StatusCode == http.StatusOK:
		response.Body = &watched{ReadCloser: response.Body, closed: func() { c.end(key, time.Since(opened) < shortLived) }}
	}
	return response, err
}

// after is when the next watch may be opened.
func (c *spaced) after(key string) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended[key].next
}

// end notes how a watch has ended.
func (c *spaced) end(key string, atOnce bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !atOnce {
		delete(c.ended, key)
		return
	}
	e := c.ended[key]
	gap := min(firstGap<<min(e.count, 10), widestGap)
	c.ended[key] = ending{e.count + 1, time.Now().Add(gap/2 + rand.N(gap/2))}
}

// watched says when a watch is closed.
type watched struct {
	io.ReadCloser
	once   sync.Once
	closed func()
}

// Close closes the watch.
func (w *watched) Close() error {
	w.once.Do(w.closed)
	return w.ReadCloser.Close()
}
