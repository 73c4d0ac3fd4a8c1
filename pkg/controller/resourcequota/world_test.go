package resourcequota

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-kcm/kube-controller-manager/pkg/quota"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

// latest is how old a creation under way, and what a watch has not brought yet,
// gets in the world.
const latest = underWay / 2

const worldHard = 10

// thing is an object, and since when it is charged.
type thing struct {
	name int
	size int64
	at   time.Time
}

// burstWorld is an API server that admits and stores, two watches that lag by
// themselves, and the controller.
type burstWorld struct {
	t    *testing.T
	rand *rand.Rand
	now  time.Time

	// The API server: its quota, what is stored, and what is admitted only.
	quota    *corev1.ResourceQuota
	stored   []thing
	admitted []thing
	asks     int
	names    int
	// The watches.
	versions []*corev1.ResourceQuota
	changes  []objectChange
	behind   []time.Time // since when each version waits
	// The controller.
	charges charges
	book    *quota.Book
	growth  quota.Growth
}

type objectChange struct {
	name int
	size int64 // 0 when it is gone
	at   time.Time
}

func newBurstWorld(t *testing.T, r *rand.Rand) *burstWorld {
	w := &burstWorld{t: t, rand: r, now: noon, growth: quota.Growth{}, asks: 3 * worldHard, charges: charges{patience: patienceOf(0)}}
	w.quota = version(1, "pods=0")
	w.quota.Spec.Hard = list(fmt.Sprintf("pods=%d", worldHard))
	w.quota.Status.Hard = w.quota.Spec.Hard
	w.book = quota.NewBook(quota.Pods, w.growth)
	w.book.Sum(quota.Scope{})
	w.charges.follow(w.quota, w.now)
	return w
}

func amount(n int64) resource.Quantity { return *resource.NewQuantity(n, resource.DecimalSI) }

func (w *burstWorld) used() int64 { return w.quota.Status.Used.Pods().Value() }

// write makes the next version of the quota.
func (w *burstWorld) write(used corev1.ResourceList) {
	next := w.quota.DeepCopy()
	var number int
	if _, err := fmt.Sscan(next.ResourceVersion, &number); err != nil {
		w.t.Fatal(err)
	}
	next.ResourceVersion = fmt.Sprint(number + 1)
	next.Status.Used = used
	w.quota = next
	w.versions, w.behind = append(w.versions, next), append(w.behind, w.now)
}

func (w *burstWorld) ask() string {
	if w.asks == 0 {
		return ""
	}
	w.asks--
	size := 1 + w.rand.Int64N(3)
	if w.used()+size > worldHard {
		return "a creation is refused"
	}
	w.names++
	w.write(corev1.ResourceList{"pods": amount(w.used() + size)})
	w.admitted = append(w.admitted, thing{w.names, size, w.now})
	return fmt.Sprintf("%d of size %d is charged: %d", w.names, size, w.used())
}

func (w *burstWorld) store() string {
	if len(w.admitted) == 0 {
		return ""
	}
	i := w.rand.IntN(len(w.admitted))
	one := w.admitted[i]
	w.admitted = slices.Delete(w.admitted, i, i+1)
	if w.rand.IntN(5) == 0 {
		return fmt.Sprintf("%d fails", one.name)
	}
	w.stored = append(w.stored, one)
	w.changes = append(w.changes, objectChange{one.name, one.size, w.now})
	return fmt.Sprintf("%d is stored", one.name)
}

// lose deletes an object, or shrinks it, which the API server does not charge.
func (w *burstWorld) lose() string {
	if len(w.stored) == 0 || w.asks == 0 || w.rand.IntN(3) > 0 {
		return ""
	}
	i := w.rand.IntN(len(w.stored))
	one := &w.stored[i]
	one.size--
	if w.rand.IntN(2) == 0 {
		one.size = 0
	}
	lost := objectChange{one.name, one.size, w.now}
	w.changes = append(w.changes, lost)
	if one.size == 0 {
		w.stored = slices.Delete(w.stored, i, i+1)
	}
	return fmt.Sprintf("%d has size %d", lost.name, lost.size)
}

func (w *burstWorld) bringVersion() string {
	if len(w.versions) == 0 {
		return ""
	}
	q := w.versions[0]
	w.versions, w.behind = w.versions[1:], w.behind[1:]
	w.charges.follow(q, w.now)
	return fmt.Sprintf("the controller sees version %s, used %d", q.ResourceVersion, q.Status.Used.Pods().Value())
}

func (w *burstWorld) bringObject() string {
	if len(w.changes) == 0 {
		return ""
	}
	c := w.changes[0]
	w.changes = w.changes[1:]
	if c.size == 0 {
		w.book.Remove(fmt.Sprint(c.name))
	} else {
		w.book.Put(fmt.Sprint(c.name), quota.Usage{Used: corev1.ResourceList{"pods": amount(c.size)}})
	}
	return fmt.Sprintf("the controller sees %d of size %d", c.name, c.size)
}

// judge decides about the version that is followed, and says when that changes.
func (w *burstWorld) judge() (decision, time.Time) {
	counted := corev1.ResourceList{"pods": amount(0)}
	addTo(counted, w.book.Sum(quota.Scope{}))
	ahead, next := w.charges.ahead(counted, w.growth.Within(quota.Scope{}), w.now)
	return decide(w.charges.quota, counted, ahead), next
}

// sync writes; the write is refused if what was judged is not the last version.
func (w *burstWorld) sync() string {
	q := w.charges.quota
	do, _ := w.judge()
	switch {
	case !do.writes:
		return ""
	case q.ResourceVersion != w.quota.ResourceVersion && len(w.versions) == 0:
		w.t.Fatalf("version %s is judged, all up to %s were seen", q.ResourceVersion, w.quota.ResourceVersion)
	case q.ResourceVersion != w.quota.ResourceVersion:
		return "" // a conflict
	}
	w.write(do.used)
	if w.rand.IntN(4) > 0 {
		w.charges.follow(w.quota, w.now) // otherwise the answer is lost
	}
	return fmt.Sprintf("the controller writes %d: %s", w.used(), do.why)
}

// pass lets time go on as far as nothing gets older than it may.
func (w *burstWorld) pass() string {
	var oldest time.Time
	waiting := slices.Clone(w.behind)
	for _, one := range w.admitted {
		waiting = append(waiting, one.at)
	}
	for _, one := range w.changes {
		waiting = append(waiting, one.at)
	}
	for _, at := range waiting {
		if oldest.IsZero() || at.Before(oldest) {
			oldest = at
		}
	}
	step := 300 * time.Millisecond
	if w.asks == 0 {
		step = 2 * time.Second
	}
	_, next := w.judge()
	if !oldest.IsZero() && w.now.Add(step).Sub(oldest) > latest || oldest.IsZero() && w.asks == 0 && next.IsZero() {
		return ""
	}
	w.now = w.now.Add(step)
	return "time passes"
}

// TestABurstNeverExceedsTheLimit has more asked for than the limit allows, with
// objects that go and creations that fail, watches that lag and answers that are
// lost. Nothing of it lets more be stored than is allowed.
func TestABurstNeverExceedsTheLimit(t *testing.T) {
	for seed := range testworld.Seeds(t, 2000) {
		world := testworld.New(seed)
		w := newBurstWorld(t, world.Rand)
		size := func(things []thing) (sum int64) {
			for _, one := range things {
				sum += one.size
			}
			return sum
		}
		world.Add(
			testworld.Actor{Name: "user", Step: w.ask}, testworld.Actor{Name: "storage", Step: w.store}, testworld.Actor{Name: "loss", Step: w.lose},
			testworld.Actor{Name: "watch of quotas", Step: w.bringVersion}, testworld.Actor{Name: "watch of objects", Step: w.bringObject},
			testworld.Actor{Name: "controller", Step: w.sync}, testworld.Actor{Name: "clock", Step: w.pass},
		)
		world.Always(func() string {
			if sum := size(w.stored); sum > worldHard {
				return fmt.Sprintf("%d is stored", sum)
			}
			if w.used() < size(w.stored)+size(w.admitted) {
				return fmt.Sprintf("%d is used, but %d stored and %d admitted", w.used(), size(w.stored), size(w.admitted))
			}
			return ""
		})
		if err := world.Run(3000); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if sum := size(w.stored); w.used() != sum {
			t.Fatalf("seed %d: %d is used and %d stored at the end\n%s", seed, w.used(), sum, world.Transcript())
		}
	}
}
