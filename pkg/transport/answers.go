package transport

import (
	"bytes"
	"io"
	"mime"
	"net/http"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
)

// Answers returns the configuration of a client that reads less of the answers to
// its writes: a pod that was created or deleted comes back with its metadata only,
// anything else without what no cache keeps.
func Answers(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &answers{next} })
	return config
}

type answers struct{ next http.RoundTripper }

// RoundTrip sends a request.
func (a *answers) RoundTrip(req *http.Request) (*http.Response, error) {
	response, err := a.next.RoundTrip(req)
	if err != nil || response.StatusCode/100 != 2 || req.Method == http.MethodGet || req.Method == http.MethodHead {
		return response, err
	}
	media, params, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	if err == nil && media == runtime.ContentTypeProtobuf && params["stream"] == "" {
		body := &answer{ReadCloser: response.Body, rules: ruleFor}
		if req.Method == http.MethodPost || req.Method == http.MethodDelete {
			body.rules = ruleForWritten
		}
		response.Body = body
	}
	return response, nil
}

// WrappedRoundTripper is the transport below, for those who look for its connections.
func (a *answers) WrappedRoundTripper() http.RoundTripper { return a.next }

// answer is the body of an answer, shortened when it is first read.
type answer struct {
	io.ReadCloser
	rules func(apiVersion, kind []byte) *rule
	short *bytes.Reader
	// err is why it broke off.
	err error
}

// bodies are buffers for answers as they come.
var bodies = sync.Pool{New: func() any { return new(bytes.Buffer) }}

// Read reads what is left of the answer. One that breaks off does so for the reader too.
func (a *answer) Read(p []byte) (int, error) {
	if a.short == nil {
		came := bodies.Get().(*bytes.Buffer)
		_, a.err = came.ReadFrom(a.ReadCloser)
		a.short = bytes.NewReader(a.shortened(came.Bytes()))
		if came.Cap() <= usualFrame {
			came.Reset()
			bodies.Put(came)
		}
	}
	n, err := a.short.Read(p)
	if err == io.EOF && a.err != nil {
		err = a.err
	}
	return n, err
}

// shortened returns the short form of an object, or else a copy of what came.
func (a *answer) shortened(came []byte) []byte {
	short, ok := envelope(make([]byte, 0, len(came)/2), came, a.rules)
	if !ok {
		return bytes.Clone(came)
	}
	return short
}
