package transport

import (
	"bufio"
	"encoding/binary"
	"io"
	"mime"
	"net/http"

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
)

// shorten wraps the transport of a client whose watches only feed trimmed caches.
func shorten(next http.RoundTripper) http.RoundTripper { return &shortening{next} }

type shortening struct{ next http.RoundTripper }

func (t *shortening) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(req)
	if err != nil {
		return response, err
	}
	media, params, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err == nil && media == runtime.ContentTypeProtobuf && params["stream"] == "watch" {
		response.Body = &stream{body: response.Body, in: bufio.NewReaderSize(response.Body, buffered)}
	}
	return response, nil
}

// WrappedRoundTripper is the transport below, for those who look for its connections.
func (t *shortening) WrappedRoundTripper() http.RoundTripper { return t.next }

// stream is a watch, frame by frame.
type stream struct {
	body io.ReadCloser
	in   *bufio.Reader

	frame, short []byte
	// ready is what of short has not been read yet.
	ready []byte
	// asIs is set when the stream cannot be followed any more: the rest is passed on.
	asIs bool
}

func (s *stream) Close() error { return s.body.Close() }

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
	head, err := s.in.Peek(header)
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
	decodedBytes.Add(float64(len(s.short)))
	cutBytes.Add(float64(size + header - len(s.short)))
	return nil
}

// sized returns a buffer of that length, the old one unless it is too small or
// was made for an unusual frame.
func sized(old []byte, size int) []byte {
	if size > cap(old) || size <= usualFrame && cap(old) > 2*usualFrame {
		return make([]byte, size, max(size, 4<<10))
	}
	return old[:size]
}
