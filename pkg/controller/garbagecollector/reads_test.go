package garbagecollector

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// slow is an API server whose reads end when they are told to.
type slow struct {
	client.Reader
	mu    sync.Mutex
	reads int
	begin chan struct{}
	end   chan error
}

func (s *slow) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	s.mu.Lock()
	s.reads++
	s.mu.Unlock()
	s.begin <- struct{}{}
	return <-s.end
}

func TestReadsAreSharedByThoseWhoWait(t *testing.T) {
	s := &slow{begin: make(chan struct{}), end: make(chan error)}
	r := newReads()
	errs := make(chan error, 10)
	ask := func() {
		_, err := r.get(t.Context(), s, location{name: "a"})
		errs <- err
	}
	go ask()
	<-s.begin // the first read is under way: nobody may use it any more
	for range 9 {
		go ask()
	}
	fixture.Eventually(t, "a read to wait", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		last := r.queue[location{name: "a"}]
		return last != nil && !last.begun
	})
	s.end <- errBroken
	if err := <-errs; !errors.Is(err, errBroken) {
		t.Errorf("the first read says %v", err)
	}
	answered := 0
	for answered < 9 {
		select {
		case <-s.begin:
			s.end <- nil
		case err := <-errs:
			answered++
			if err != nil {
				t.Errorf("a read that began later says %v", err)
			}
		case <-time.After(30 * time.Second):
			t.Fatal("no answer")
		}
	}
	if s.reads > 10 {
		t.Errorf("%d reads", s.reads)
	}
	if len(r.queue) != 0 {
		t.Errorf("%d reads are remembered", len(r.queue))
	}
}
