package wire

import (
	"bufio"
	"encoding/binary"
	"io"
	"mime"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
)

const (
	header = 4 // bytes of a frame's length, big-endian
	// mostFrame is the longest frame that is shortened; client-go refuses longer ones.
	mostFrame = 16 << 20
	// usualFrame bounds the memory that a stream keeps between two frames.
	usualFrame = 64 << 10
	// buffered is how much is read at once.
	buffered = 16 << 10

	// gathering is how long the frames of a gathered stream are left to come
	// together, from the first one on.
	gathering = time.Second
	// filling is how long after its start a stream is not gathered: it brings the
	// first state then, which everybody waits for.
	filling = 5 * time.Second
	// waited is from when on a read is taken to have waited for news.
	waited = time.Millisecond
)

// Shorten wraps the transport of a client whose watches only feed trimmed caches.
func Shorten(next http.RoundTripper) http.RoundTripper { return &transport{next} }

type transport struct{ next http.RoundTripper }

func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(req)
	if err != nil {
		return response, err
	}
	media, params, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err == nil && media == runtime.ContentTypeProtobuf && params["stream"] == "watch" {
		s := &stream{body: response.Body, in: bufio.NewReaderSize(response.Body, buffered), closed: make(chan struct{})}
		if gathered(req.URL.Path) {
			s.gatherFrom = time.Now().Add(filling)
		}
		response.Body = s
	}
	return response, nil
}

// WrappedRoundTripper is the transport below, for those who look for its connections.
func (t *transport) WrappedRoundTripper() http.RoundTripper { return t.next }

// stream is a watch, frame by frame.
type stream struct {
	body io.ReadCloser
	in   *bufio.Reader

	frame, short []byte
	// ready is what of short has not been read yet.
	ready []byte
	// gatherFrom is when the stream begins to be gathered; never when it is zero.
	gatherFrom time.Time
	closed     chan struct{}
	close      sync.Once
	// asIs is set when the stream cannot be followed any more: the rest is passed on.
	asIs bool
}

func (s *stream) Close() error {
	s.close.Do(func() { close(s.closed) })
	return s.body.Close()
}

func (s *stream) Read(p []byte) (int, error) {
	for len(s.ready) == 0 {
		if s.asIs {
			return s.in.Read(p)
		}
		if err := s.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, s.ready)
	s.ready = s.ready[n:]
	return n, nil
}

// next reads a frame and makes its short form ready.
func (s *stream) next() error {
	head, err := s.peek()
	if err != nil {
		if len(head) > 0 {
			s.asIs = true // a stream cut short ends for the reader as it came
			return nil
		}
		return err
	}
	size := int(binary.BigEndian.Uint32(head))
	if size > mostFrame {
		s.asIs = true
		return nil
	}
	if _, err := s.in.Discard(header); err != nil {
		return err
	}
	s.frame = sized(s.frame, size)
	if _, err := io.ReadFull(s.in, s.frame); err != nil {
		return err
	}
	s.short = append(sized(s.short, 0), 0, 0, 0, 0)
	s.short = Event(s.short, s.frame)
	binary.BigEndian.PutUint32(s.short, uint32(len(s.short)-header))
	s.ready = s.short
	return nil
}

// peek waits for the length of the next frame. News on a gathered stream wake the
// reader once for all that come within a while: each waking goes through half a
// dozen goroutines, which costs more than the frame itself.
func (s *stream) peek() ([]byte, error) {
	began := time.Now()
	head, err := s.in.Peek(header)
	now := time.Now()
	if err != nil || s.gatherFrom.IsZero() || now.Sub(began) < waited || now.Before(s.gatherFrom) {
		return head, err
	}
	timer := time.NewTimer(gathering)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.closed:
	}
	return head, nil
}

// sized returns a buffer of that length, the old one unless it is too small or
// was made for an unusual frame.
func sized(old []byte, size int) []byte {
	if size > cap(old) || size <= usualFrame && cap(old) > 2*usualFrame {
		return make([]byte, size, max(size, 4<<10))
	}
	return old[:size]
}
