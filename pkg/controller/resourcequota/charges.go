package resourcequota

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// underWay is how long a charge of the API server may be ahead of its object.
	// One that lasts longer was in vain: its object was never made.
	underWay = 10 * time.Second
	// inherited is the same for a usage that was there when this process first saw
	// the quota: few of its charges are younger than the process.
	inherited = 2 * time.Second
	// grain is how close charges are that are remembered as one.
	grain = 100 * time.Millisecond
)

// charges follows what is charged to one quota. The API server charges it before
// an object is made, and the two are seen in any order. What was charged, less
// what the objects grew by, is under way and must stay in the usage. Anything else
// that the usage has beyond what the objects use has been given back.
type charges struct {
	// quota is the version up to which charges are known.
	quota *corev1.ResourceQuota
	// raised is by how much the usage was ever raised.
	raised corev1.ResourceList
	lines  map[corev1.ResourceName]*line
	// recent are the charges of the time underWay, the oldest first.
	recent []charge
	patience
}

// patience is how long charges and inherited usages are believed. It is no longer
// than the time between two full counts, which somebody may have set on purpose.
type patience struct{ underWay, inherited time.Duration }

// patienceOf is what a recount of all every period leaves.
func patienceOf(period time.Duration) patience {
	p := patience{underWay, inherited}
	if period > 0 {
		p = patience{min(underWay, period), min(inherited, period)}
	}
	return p
}

// line is about one name.
type line struct {
	// offset is the difference of raised and grown at which nothing is under way.
	offset resource.Quantity
	// below is since when the objects grew by more than was charged.
	below time.Time
}

// charge is what was charged from one time to another.
type charge struct {
	from, to time.Time
	by       corev1.ResourceList
}

// begin takes the first version of the quota that is known.
func (c *charges) begin(q *corev1.ResourceQuota, now time.Time) {
	*c = charges{quota: q, raised: corev1.ResourceList{}, lines: map[corev1.ResourceName]*line{}, patience: c.patience}
	at := now.Add(c.inherited - c.underWay)
	c.note(charge{at, at, q.Status.Used})
}

// older reports whether a is an earlier version than b of the same quota.
func older(a, b *corev1.ResourceQuota) bool {
	order, err := resourceversion.CompareResourceVersion(a.ResourceVersion, b.ResourceVersion)
	return a.UID == b.UID && err == nil && order < 0
}

// follow takes the next version of the quota. One that is older than what our own write
// has returned changes nothing.
func (c *charges) follow(q *corev1.ResourceQuota, now time.Time) {
	switch {
	case c.quota == nil || c.quota.UID != q.UID:
		c.begin(q, now)
		return
	case older(q, c.quota):
		return
	}
	by := corev1.ResourceList{}
	for name, is := range q.Status.Used {
		was, had := c.quota.Status.Used[name]
		if had && is.Cmp(was) > 0 {
			more := is.DeepCopy()
			more.Sub(was)
			by[name] = more
		}
	}
	c.quota = q
	addTo(c.raised, by)
	c.note(charge{now, now, by})
}

// note remembers a charge for as long as its object may be under way.
func (c *charges) note(one charge) {
	if len(one.by) == 0 {
		return
	}
	if n := len(c.recent); n > 0 && one.to.Sub(c.recent[n-1].from) < grain {
		c.recent[n-1].to = one.to
		addTo(c.recent[n-1].by, one.by)
		return
	}
	one.by = maps.Clone(one.by)
	c.recent = append(c.recent, one)
}

// ahead is, for the names that were counted, how much was charged for objects
// that may be under way, and when that is less without them; zero if nothing is
// under way that the usage holds. Grown is what the objects ever grew by.
func (c *charges) ahead(counted, grown corev1.ResourceList, now time.Time) (corev1.ResourceList, time.Time) {
	for len(c.recent) > 0 && now.Sub(c.recent[0].to) >= c.underWay {
		c.recent = c.recent[1:]
	}
	ahead, next := corev1.ResourceList{}, time.Time{}
	for name, count := range counted {
		used, had := c.quota.Status.Used[name]
		if !had {
			// It will be what is counted now; what comes then is charged.
			c.lines[name] = &line{offset: less(c.raised[name], grown[name])}
			continue
		}
		more := less(used, count)
		pending := c.pending(name, more, grown[name], now)
		if pending.Sign() <= 0 {
			continue
		}
		ahead[name] = pending
		if at := c.until(name, pending); more.Sign() > 0 && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	return ahead, next
}

// pending is how much of a name is under way. More is what the usage has more
// than the objects use, which is all that is known of a name at first.
func (c *charges) pending(name corev1.ResourceName, more, grown resource.Quantity, now time.Time) resource.Quantity {
	difference := less(c.raised[name], grown)
	l := c.lines[name]
	if l == nil {
		l = &line{offset: difference.DeepCopy()}
		if more.Sign() > 0 {
			l.offset.Sub(more)
		}
		c.lines[name] = l
	}
	pending := less(difference, l.offset)
	if most := c.charged(name); pending.Cmp(most) > 0 {
		pending = most
		l.offset = less(difference, pending)
	}
	switch {
	case pending.Sign() >= 0:
		l.below = time.Time{}
	case l.below.IsZero():
		l.below = now // the charges of these objects are yet to be seen
	case now.Sub(l.below) >= c.underWay:
		*l = line{offset: difference} // nobody charged them
	}
	return pending
}

// charged is the sum of the recent charges of a name.
func (c *charges) charged(name corev1.ResourceName) resource.Quantity {
	sum := *resource.NewQuantity(0, resource.DecimalSI)
	for _, one := range c.recent {
		sum.Add(one.by[name])
	}
	return sum
}

// until is when the recent charges of a name are no longer as much as that.
func (c *charges) until(name corev1.ResourceName, pending resource.Quantity) time.Time {
	left := c.charged(name)
	for _, one := range c.recent {
		left.Sub(one.by[name])
		if left.Cmp(pending) < 0 {
			return one.to.Add(c.underWay)
		}
	}
	return time.Time{}
}

func less(a, b resource.Quantity) resource.Quantity {
	difference := a.DeepCopy()
	difference.Sub(b)
	return difference
}

// addTo adds a list to the sums.
func addTo(sums, by corev1.ResourceList) {
	for name, quantity := range by {
		sum := sums[name].DeepCopy()
		sum.Add(quantity)
		sums[name] = sum
	}
}
