package why

import (
	"cmp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// order is that of the verdicts, the one that counts first in front.
var order = []Verdict{Blocked, Paused, Waiting, Progressing, Unknown, Complete}

// rank is the place of a verdict in the order.
func (v Verdict) rank() int { return slices.Index(order, v) }

// Worse reports whether v counts before the other.
func (v Verdict) Worse(other Verdict) bool { return v.rank() < other.rank() }

// inWords is a span of time for a sentence, such as 4s or 3d5h.
func inWords(d time.Duration) string { return duration.HumanDuration(d) }

// finding is what an object says of itself.
type finding struct {
	verdict Verdict
	// sentence goes on after "it is ...:", and ends without a full stop.
	sentence string
	// cause has the words of somebody else, for when no controller has them newer.
	cause string
	until time.Time
	facts []string
	// over: it has ended, and holds up nobody who owns it.
	over bool
}

func (f finding) with(v Verdict, sentence string) finding {
	f.verdict, f.sentence = v, sentence
	return f
}

func (f finding) because(cause string) finding {
	f.cause = cause
	return f
}

// decisive is the place of the object that says most about why: of those with the
// verdict that counts, the deepest, as it holds up the others; where nothing is held up,
// the one nearest to the question.
func decisive(items []item) int {
	best := -1
	for i := range items {
		if items[i].Depth < 0 || items[i].over && items[i].Depth > 0 {
			continue
		}
		if best < 0 || compare(&items[i], &items[best]) < 0 {
			best = i
		}
	}
	return best
}

// compare orders by how much two objects say about why.
func compare(a, b *item) int {
	if c := cmp.Compare(a.counts().rank(), b.counts().rank()); c != 0 {
		return c
	}
	if a.Verdict == Complete || a.Verdict == Unknown || a.Verdict == Progressing {
		return cmp.Compare(a.Depth, b.Depth)
	}
	return cmp.Or(cmp.Compare(b.Depth, a.Depth), cmp.Compare(b.failures(), a.failures()))
}

// item is an object of an answer with what is of use while it is made.
type item struct {
	Object
	over bool
}

// counts is the verdict for those above: what is not known is not taken for trouble.
func (i *item) counts() Verdict {
	if i.Depth != 0 && (i.Verdict == Unknown || i.over) {
		return Complete
	}
	return i.Verdict
}

func (i *item) failures() int {
	most := 0
	for _, c := range i.Controllers {
		most = max(most, c.Failures)
	}
	return most
}

// worst is the verdict of a part of the chain that counts for those above it.
func worst(items []item) Verdict {
	v := Complete
	for i := range items {
		if of := items[i].counts(); of.Worse(v) {
			v = of
		}
	}
	return v
}
