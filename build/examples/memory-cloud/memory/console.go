package memory

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"
)

// serve opens the console. It stays open until the process ends, as the cloud does.
func (c *Cloud) serve(address string) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: c.console(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }()
	return nil
}

// console answers:
//
//	GET /                             what there is in the cloud, and what was asked of it
//	PUT /instances/NODE?state=off     an instance; running if nothing is said
//	DELETE /instances/NODE            the instance is gone
//	PUT /failures/METHOD?of=X&times=2 the next calls of a method fail, those of X or all
func (c *Cloud) console() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(c.state)
	})
	mux.HandleFunc("PUT /instances/{name}", func(w http.ResponseWriter, req *http.Request) {
		state := req.URL.Query().Get("state")
		switch state {
		case "":
			state = Running
		case Running, Off:
		default:
			http.Error(w, fmt.Sprintf("an instance is %s or %s, not %q", Running, Off, state), http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.state.Instances[req.PathValue("name")] = state
	})
	mux.HandleFunc("DELETE /instances/{name}", func(_ http.ResponseWriter, req *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.state.Instances, req.PathValue("name"))
	})
	mux.HandleFunc("PUT /failures/{method}", func(w http.ResponseWriter, req *http.Request) {
		times, err := strconv.Atoi(req.URL.Query().Get("times"))
		if err != nil {
			http.Error(w, "times: "+err.Error(), http.StatusBadRequest)
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failures[target{req.PathValue("method"), req.URL.Query().Get("of")}] = times
	})
	return mux
}
