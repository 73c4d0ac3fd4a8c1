package harness

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Fault is what goes wrong with a request on its way.
type Fault struct {
	// Refuse answers with this code, as the API server would, without passing the request on.
	Refuse int
	// Absent answers with 404 or 405, as the API server would for what it does not serve.
	Absent int
	// Delay holds the request back before it is passed on.
	Delay time.Duration
	// Stall holds the answer back.
	Stall time.Duration
	// Lose passes the request on and loses the answer: 1 resets the stream, any
	// other number is the code of an answer that is not the API server's.
	Lose int
	// Cut ends the answer's body in the middle.
	Cut bool
	// Early resets the stream at once, and passes the request on after Delay all the same.
	Early bool
}

// ends reports whether more goes wrong than that it takes longer.
func (f Fault) ends() bool {
	f.Stall = 0
	if !f.Early {
		f.Delay = 0
	}
	return f != Fault{}
}

// LoseByReset is the Lose that resets the stream.
const LoseByReset = 1

var errLost = errors.New("the answer is lost")

// lose does to an answer what its fault says.
func lose(response *http.Response) error {
	fault, _ := response.Request.Context().Value(faultKey{}).(Fault)
	pause(response.Request.Context(), fault.Stall)
	switch {
	case fault.Lose == LoseByReset:
		return errLost
	case fault.Lose != 0:
		_ = response.Body.Close()
		page := "<html>" + http.StatusText(fault.Lose) + "</html>"
		response.StatusCode, response.Status = fault.Lose, ""
		response.Header = http.Header{"Content-Type": {"text/html"}, "Content-Length": {fmt.Sprint(len(page))}}
		response.ContentLength, response.Body = int64(len(page)), io.NopCloser(strings.NewReader(page))
	case fault.Cut:
		response.Body = &cut{response.Body}
	}
	return nil
}

// cut ends in the middle.
type cut struct{ io.ReadCloser }

// Read reads a few bytes and fails.
func (c *cut) Read(b []byte) (int, error) {
	n, _ := c.ReadCloser.Read(b[:min(len(b), 20)])
	return n, errLost
}

// RandomFaults disturbs a share of all requests, and of the creations of pods
// three times as many, by a seed, in every way there is.
func RandomFaults(seed uint64, share float64) func(*http.Request) Fault {
	random := rand.New(rand.NewPCG(seed, seed))
	refusals := []func() Fault{
		func() Fault { return Fault{Refuse: http.StatusConflict} },
		func() Fault { return Fault{Refuse: http.StatusForbidden} },
		func() Fault { return Fault{Refuse: http.StatusTooManyRequests} },
		func() Fault { return Fault{Refuse: http.StatusInternalServerError} },
		func() Fault { return Fault{Refuse: http.StatusServiceUnavailable} },
		func() Fault { return Fault{Delay: time.Duration(random.IntN(1000)) * time.Millisecond} },
		func() Fault { return Fault{Stall: time.Duration(random.IntN(3000)) * time.Millisecond} },
	}
	losses := []func() Fault{
		func() Fault { return Fault{Lose: LoseByReset} },
		func() Fault { return Fault{Lose: http.StatusTooManyRequests} },
		func() Fault { return Fault{Lose: http.StatusBadGateway} },
		func() Fault { return Fault{Lose: http.StatusServiceUnavailable} },
		func() Fault { return Fault{Lose: http.StatusGatewayTimeout} },
		func() Fault { return Fault{Cut: true} },
		func() Fault { return Fault{Early: true, Delay: time.Duration(random.IntN(500)) * time.Millisecond} },
	}
	all := append(slices.Clone(refusals), losses...)
	return func(r *http.Request) Fault {
		of, kinds := share, all
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/pods") {
			of, kinds = 3*share, losses
		}
		if random.Float64() >= of {
			return Fault{}
		}
		return kinds[random.IntN(len(kinds))]()
	}
}
