package nodelifecycle

import (
	"container/list"
	"math"
	"time"
)

// evictions are the nodes of a zone that wait for their NoExecute taint, first
// in, first out, with a token bucket that holds one token. It is data: the time
// comes with every call.
type evictions struct {
	rate  float32 // tokens per second; zero or less lets nobody through
	ready time.Time
	// line has the names of the nodes, and places where they are in it.
	line   *list.List
	places map[string]*list.Element
}

func newEvictions(rate float32) *evictions {
	return &evictions{rate: rate, line: list.New(), places: map[string]*list.Element{}}
}

// add puts a node in line unless it waits already.
func (e *evictions) add(node string) {
	if e.places[node] == nil {
		e.places[node] = e.line.PushBack(node)
	}
}

// remove takes a node out of the line.
func (e *evictions) remove(node string) {
	if place := e.places[node]; place != nil {
		e.line.Remove(place)
		delete(e.places, node)
	}
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
	if e.line.Len() == 0 || e.rate <= 0 || now.Before(e.ready) {
		return "", false
	}
	node = e.line.Front().Value.(string)
	e.remove(node)
	e.ready = now.Add(e.interval())
	return node, true
}

// wait is how long until a node can be let through; false when none waits or
// the rate lets nobody through.
func (e *evictions) wait(now time.Time) (time.Duration, bool) {
	if e.line.Len() == 0 || e.rate <= 0 {
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
