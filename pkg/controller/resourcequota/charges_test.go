package resourcequota

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/quota"
)

// version is a version of one quota.
func version(number int, used string) *corev1.ResourceQuota {
	q := limits("pods=9", "pods=9", used)
	q.ResourceVersion = fmt.Sprint(number)
	return q
}

func TestWhatIsChargedAheadOfItsObjects(t *testing.T) {
	// A step is a version of the quota, or a look at what was counted and ever grew.
	type step struct {
		at      time.Duration
		version int
		used    string
		counted string
		grown   string
		ahead   string
		until   time.Duration
	}
	charge := func(at time.Duration, version int, used string) step {
		return step{at: at, version: version, used: used}
	}
	look := func(at time.Duration, counted, grown, ahead string, until time.Duration) step {
		return step{at: at, counted: counted, grown: grown, ahead: ahead, until: until}
	}
	const s = time.Second
	begin := []step{charge(-60*s, 1, "pods=2"), look(-50*s, "pods=2", "", "", 0)}
	for name, steps := range map[string][]step{
		"nothing is charged": {look(0, "pods=2", "", "", 0)},
		"a charge is ahead until its object is seen": {
			charge(0, 2, "pods=3"), look(s, "pods=2", "", "pods=1", underWay), look(2*s, "pods=3", "pods=1", "", 0), look(3*s, "pods=2", "pods=1", "", 0)},
		"a charge in vain is ahead for a while": {
			charge(0, 2, "pods=3"), look(underWay-s, "pods=2", "", "pods=1", underWay), look(underWay, "pods=2", "", "", 0)},
		"an object that is seen before its charge": {
			look(0, "pods=3", "pods=1", "", 0), charge(s, 2, "pods=3"), look(2*s, "pods=3", "pods=1", "", 0), look(3*s, "pods=2", "pods=1", "", 0)},
		"one that went again before its charge is seen": {
			look(0, "pods=2", "pods=1", "", 0), charge(s, 2, "pods=3"), look(2*s, "pods=2", "pods=1", "", 0)},
		"a deletion leaves what is ahead": {
			charge(0, 2, "pods=4"), look(s, "pods=1", "", "pods=2", underWay), look(2*s, "pods=2", "pods=1", "pods=1", underWay)},
		"later charges do not keep one in vain": {
			charge(0, 2, "pods=3"), charge(4*s, 3, "pods=4"), look(4*s, "pods=2", "", "pods=2", underWay),
			look(5*s, "pods=3", "pods=1", "pods=1", underWay+4*s), look(underWay+4*s, "pods=3", "pods=1", "", 0)},
		"charges of one moment are one": {
			charge(0, 2, "pods=3"), charge(grain/2, 3, "pods=4"), look(s, "pods=2", "", "pods=2", underWay+grain/2)},
		"charges that are no moment apart are two": {
			charge(0, 2, "pods=3"), charge(grain, 3, "pods=4"), look(s, "pods=2", "", "pods=2", underWay)},
		"a version with the same usage is no charge": {
			charge(0, 2, "pods=3"), charge(grain/2, 3, "pods=3"), look(s, "pods=2", "", "pods=1", underWay)},
		"what the usage does not hold any more is not waited for": {
			charge(0, 2, "pods=3"), charge(s, 3, "pods=2"), look(2*s, "pods=2", "", "pods=1", 0)},
		"our own version is no charge, and an older one comes too late": {
			charge(0, 3, "pods=1"), charge(s, 2, "pods=5"), look(2*s, "pods=1", "", "", 0)},
		"a raise for what nobody charged leaves nothing ahead": {
			look(0, "pods=4", "pods=2", "", 0), charge(s, 2, "pods=4"), look(2*s, "pods=4", "pods=2", "", 0)},
		"objects that nobody charged hide no charge for long": {
			look(0, "pods=2", "pods=1", "", 0), look(underWay, "pods=2", "pods=1", "", 0),
			charge(underWay+s, 2, "pods=3"), look(underWay+2*s, "pods=2", "pods=1", "pods=1", 2*underWay+s)},
		"what was deleted since the usage was first written is not ahead": {
			charge(0, 2, ""), look(s, "pods=1", "pods=5", "", 0), charge(2*s, 3, "pods=1"), charge(3*s, 4, "pods=9"),
			look(4*s, "pods=4", "pods=11", "pods=2", underWay+3*s), look(5*s, "pods=6", "pods=13", "", 0)},
		"a usage that was taken away is known from scratch": {
			charge(0, 2, ""), look(s, "pods=2", "pods=7", "", 0), charge(2*s, 3, "pods=2"), look(3*s, "pods=2", "pods=7", "", 0)},
	} {
		t.Run(name, func(t *testing.T) {
			c := charges{patience: patienceOf(0)}
			for i, do := range append(begin, steps...) {
				now := noon.Add(do.at)
				if do.version != 0 {
					c.follow(version(do.version, do.used), now)
					continue
				}
				ahead, next := c.ahead(list(do.counted), list(do.grown), now)
				if !quota.Same(ahead, list(do.ahead)) {
					t.Errorf("step %d: ahead by %v, want %s", i, ahead, do.ahead)
				}
				if want := noon.Add(do.until); do.until == 0 && !next.IsZero() || do.until != 0 && !next.Equal(want) {
					t.Errorf("step %d: until %v, want %v", i, next, want)
				}
			}
		})
	}
}

func TestWhatWasThereBeforeIsBelievedForAMoment(t *testing.T) {
	c := charges{patience: patienceOf(5 * time.Minute)}
	c.follow(version(1, "pods=7"), noon)
	if ahead, next := c.ahead(list("pods=2"), nil, noon); !quota.Same(ahead, list("pods=5")) || !next.Equal(noon.Add(inherited)) {
		t.Errorf("ahead by %v until %v", ahead, next)
	}
	if ahead, _ := c.ahead(list("pods=2"), nil, noon.Add(inherited)); len(ahead) > 0 {
		t.Errorf("still ahead by %v", ahead)
	}
	other := version(2, "pods=3")
	other.UID = "another"
	c.follow(other, noon.Add(time.Minute))
	if ahead, _ := c.ahead(list("pods=2"), nil, noon.Add(time.Minute)); !quota.Same(ahead, list("pods=1")) {
		t.Errorf("another quota of the name is ahead by %v", ahead)
	}
}

func TestPatience(t *testing.T) {
	for period, want := range map[time.Duration]patience{
		0:                {underWay, inherited},
		5 * time.Minute:  {underWay, inherited},
		3 * time.Second:  {3 * time.Second, inherited},
		time.Millisecond: {time.Millisecond, time.Millisecond},
	} {
		if got := patienceOf(period); got != want {
			t.Errorf("%s: %v", period, got)
		}
	}
}
