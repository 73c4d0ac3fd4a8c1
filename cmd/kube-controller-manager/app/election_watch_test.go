package app

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// TestTheWatchesOfAnElectionBackOff counts the watches that are opened in two
// seconds at an API server that answers each with 410.
func TestTheWatchesOfAnElectionBackOff(t *testing.T) {
	for name, watch := range map[string]func(context.Context, *elections, *process) (wait func(), err error){
		"of the lease": func(ctx context.Context, e *elections, _ *process) (func(), error) {
			return watchLease(ctx, e.watching, testLease, e.mayTake, func() {}), nil
		},
		"of the candidate": func(ctx context.Context, e *elections, p *process) (func(), error) {
			var background sync.WaitGroup
			e.coordinated = true
			return background.Wait, e.startCandidate(ctx, p, &background)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var watches atomic.Int32
			cluster := newEmptyCluster(t, func(req *http.Request) int {
				if !req.URL.Query().Has("watch") {
					return 0
				}
				watches.Add(1)
				return http.StatusGone
			})
			ctx, stop := context.WithTimeout(t.Context(), 2*time.Second)
			defer stop()
			p := cluster.leader(t)
			e, err := newElections(ctx, p)
			if err != nil {
				t.Fatal(err)
			}
			wait, err := watch(ctx, e, p)
			if err != nil {
				t.Fatal(err)
			}
			<-ctx.Done()
			wait()
			if got := watches.Load(); got < 2 || got > 8 {
				t.Errorf("%d watches in two seconds", got)
			}
		})
	}
}

// TestALeaseCandidateOutlastsRefusals refuses what a candidate asks for the
// first few times, each time in another way.
func TestALeaseCandidateOutlastsRefusals(t *testing.T) {
	offered := make(chan struct{})
	asked := map[string]int{}
	cluster := newEmptyCluster(t, func(req *http.Request) int {
		if !strings.HasSuffix(req.URL.Path, "/leasecandidates") {
			return 0
		}
		what := req.Method
		if req.URL.Query().Has("watch") {
			what = "WATCH"
		}
		asked[what]++
		switch {
		case what == "WATCH" && asked[what] == 1:
			return http.StatusGone
		case asked[what] == 1:
			return http.StatusServiceUnavailable
		case what == http.MethodPost && asked[what] == 2:
			return http.StatusInternalServerError
		case what == http.MethodPost && asked[what] == 3:
			close(offered)
		}
		return 0
	})
	p := cluster.leader(t)
	e, err := newElections(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	e.coordinated = true
	ctx, stop := context.WithTimeout(t.Context(), deadline)
	defer stop()
	var background sync.WaitGroup
	if err := e.startCandidate(ctx, p, &background); err != nil {
		t.Fatal(err)
	}
	select {
	case <-offered:
	case <-ctx.Done():
		t.Error("no candidate was offered")
	}
	stop()
	background.Wait()
}
