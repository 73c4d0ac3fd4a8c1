package nodelifecycle

import (
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
)

const (
	// fewLeases is how many leases are read one by one; more are listed.
	fewLeases = 5
	// minHeard is how many nodes must have been heard from in a pass before it is odd that
	// nobody is heard from at all.
	minHeard = 10
	// silencePart is the part of the grace period after which it is odd, and listAgain the one
	// between two lists while the cache of leases is behind.
	silencePart, listAgain = 4, 10
)

// view is what is known of how well the caches show the heartbeats of nodes: a cache
// that is behind looks like a cluster whose nodes have stopped.
type view struct {
	// heard is how many heartbeats this pass has noticed; last is the pass that has last
	// noticed any, and heardLast how many it has.
	heard     int
	last      time.Time
	heardLast int
	// silenceShown: a list has shown that there was no heartbeat since last.
	silenceShown bool
	// unheardSince is the last heartbeat before reads began to fail, or the last pass before
	// none was made for a grace period; zero when they work.
	unheardSince time.Time
	// late: no pass was made for a grace period before this one.
	late bool
	// listed is when all leases were last asked for.
	listed time.Time
	// trouble is when a request has last failed, or the cache was last found to be behind.
	trouble time.Time
}

// question is what only live leases can answer; the zero value is none.
type question struct {
	// doubtful are nodes that are to be marked unknown unless they were heard from.
	doubtful []*memory
	// names are those of the doubtful nodes: who reads their leases does not hold the lock.
	names []string
	// all leases are to be read.
	all bool
}

// ask returns what has to be read live before this pass can end. While the cache is
// behind, lists take its place, at intervals.
func (c *cluster) ask() question {
	v := &c.view
	if v.heard > 0 {
		v.last, v.heardLast, v.silenceShown = c.now, v.heard, false
		c.addMissedTime()
	}
	var q question
	behind := false
	for _, r := range c.visited {
		behind = behind || !r.ahead.IsZero()
		if r.doubtful(c.graces, c.now) {
			q.doubtful, q.names = append(q.doubtful, r), append(q.names, r.object.Name)
		}
	}
	if behind {
		v.trouble = c.now
	}
	nobodyHeard := !v.silenceShown && v.heardLast >= minHeard && c.now.Sub(v.last) >= c.graces.monitor/silencePart
	switch {
	case behind || nobodyHeard || c.braked:
		if c.now.Sub(v.listed) < c.graces.monitor/listAgain {
			return question{}
		}
		q.all = true
	case len(q.doubtful) > fewLeases:
		q.all = true
	}
	if q.all {
		v.listed = c.now
	}
	return q
}

// answer takes in the leases that were read, by the name of their node; a nil one does
// not exist. Whose lease could not be read, as failed says, stays in doubt.
func (c *cluster) answer(q question, leases map[string]*coordinationv1.Lease, failed error, now time.Time) {
	c.now = now
	v := &c.view
	if failed != nil {
		v.trouble = now
		c.found.unread = failed
		if v.heard == 0 && v.unheardSince.IsZero() {
			v.unheardSince = v.last
		}
	}
	of := q.doubtful
	if q.all {
		of = c.visited
	}
	heard := 0
	for _, r := range of {
		lease, read := leases[r.object.Name]
		if !read && (failed != nil || !q.all) {
			continue
		}
		doubtful := r.doubtful(c.graces, now)
		if r.seeLive(lease, now) {
			heard++
			if doubtful {
				v.trouble = now // the cache has missed it for a whole grace period
			}
		}
	}
	if failed == nil {
		v.silenceShown = q.all && heard == 0
		c.addMissedTime()
	}
	if heard > 0 {
		v.last = now
	}
	for _, r := range q.doubtful {
		_, read := leases[r.object.Name]
		if (read || failed == nil && q.all) && r.doubtful(c.graces, now) {
			r.proven, r.since = true, now
		}
	}
}

// noteLate notes whether no pass was made for a grace period: who was away then, paused or
// without an API server, cannot tell who else was. If it happens each time, it is how long a
// pass takes, and counts.
func (v *view) noteLate(last, now time.Time, grace time.Duration) {
	late := !last.IsZero() && now.Sub(last) > grace
	if late && !v.late && v.unheardSince.IsZero() {
		v.unheardSince = last
	}
	v.late = late
}

// addMissedTime ends a time in which nobody was heard from and nothing could be read: it
// counts for nobody's grace period.
func (c *cluster) addMissedTime() {
	if c.view.unheardSince.IsZero() {
		return
	}
	missed := c.now.Sub(c.view.unheardSince)
	c.view.unheardSince = time.Time{}
	for _, r := range c.visited {
		if later := r.probe.Add(missed); r.proven {
			continue
		} else if later.Before(c.now) {
			r.probe = later
		} else {
			r.probe = c.now
		}
	}
}
