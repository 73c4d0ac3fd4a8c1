package nodelifecycle

import (
	"math"
	"time"
)

// evictions are the nodes of a zone that wait for their NoExecute taint, first
// in, first out, with a token bucket that holds one token. It is data: the time
// comes with every call.
type evictions struct {
	rate  float32 // tokens per second; zero or less lets nobody through
	ready time.Time
	line  []waiting
	since map[string]int
	turn  int
}

// waiting is a place in the line. A node that left has no entry of that turn in
// since, and its place is skipped.
type waiting struct {
	node string
	turn int
}

func newEvictions(rate float32) *evictions {
	return &evictions{rate: rate, since: map[string]int{}}
}

// add puts a node in line unless it waits already.
func (e *evictions) add(node string) {
	if _, ok := e.since[node]; ok {
		return
	}
	e.turn++
	e.since[node] = e.turn
	e.line = append(e.line, waiting{node, e.turn})
}

// remove takes a node out of the line.
func (e *evictions) remove(node string) {
	if _, ok := e.since[node]; !ok {
		return
	}
	delete(e.since, node)
	if len(e.line) > 2*len(e.since)+16 {
		e.compact()
	}
}

// compact drops the places of those who left, so that nodes that come and go
// while nobody is let through do not grow the line.
func (e *evictions) compact() {
	kept := e.line[:0]
	for _, w := range e.line {
		if e.since[w.node] == w.turn {
			kept = append(kept, w)
		}
	}
	e.line = kept
}

// setRate changes the rate. Who waited for a token goes on waiting, at the new
// rate: a zone whose rate was zero does not start with a token.
func (e *evictions) setRate(rate float32, now time.Time) {
	if rate == e.rate {
		return
	}
	drained := e.rate <= 0 || now.Before(e.ready)
	e.rate, e.ready = rate, time.Time{}
	if drained && rate > 0 {
		e.ready = now.Add(e.interval())
	}
}

// take lets the next node through if there is a token.
func (e *evictions) take(now time.Time) (node string, ok bool) {
	if e.rate <= 0 || now.Before(e.ready) {
		return "", false
	}
	for len(e.line) > 0 {
		w := e.line[0]
		e.line = e.line[1:]
		if e.since[w.node] != w.turn {
			continue
		}
		delete(e.since, w.node)
		e.ready = now.Add(e.interval())
		return w.node, true
	}
	return "", false
}

// wait is how long until a node can be let through; false when none waits or
// the rate lets nobody through.
func (e *evictions) wait(now time.Time) (time.Duration, bool) {
	if len(e.since) == 0 || e.rate <= 0 {
		return 0, false
	}
	return max(e.ready.Sub(now), 0), true
}

// interval is the time between two tokens; a rate of 0.1 is not quite that as a float32. For
// the smallest rates it is as long as a duration can be.
func (e *evictions) interval() time.Duration {
	between := float64(time.Second) / float64(e.rate)
	if between >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(between).Round(time.Microsecond)
}
