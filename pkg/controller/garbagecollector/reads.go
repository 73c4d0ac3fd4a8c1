package garbagecollector

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reads lets those who ask for the same owner at the same time share a read. It
// begins after each of them has asked, so that it is as good as one of their own:
// who comes while one is under way waits for the next.
type reads struct {
	mu    sync.Mutex
	queue map[location]*read
}

// read is one that has not begun: it waits for the one before it.
type read struct {
	// before is closed when the read before this one has ended, and done when this one has.
	before, done chan struct{}
	object       *metav1.PartialObjectMetadata
	err          error
	begun        bool
}

func newReads() *reads { return &reads{queue: map[location]*read{}} }

func (r *reads) get(ctx context.Context, live client.Reader, at location) (*metav1.PartialObjectMetadata, error) {
	r.mu.Lock()
	last := r.queue[at]
	if last != nil && !last.begun {
		r.mu.Unlock()
		<-last.done
		return last.object, last.err
	}
	mine := &read{done: make(chan struct{})}
	if last != nil {
		mine.before = last.done
	}
	r.queue[at] = mine
	r.mu.Unlock()
	if mine.before != nil {
		<-mine.before
	}
	r.mu.Lock()
	mine.begun = true
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		if r.queue[at] == mine {
			delete(r.queue, at)
		}
		r.mu.Unlock()
		close(mine.done)
	}()
	mine.object, mine.err = readAt(ctx, live, at)
	return mine.object, mine.err
}
