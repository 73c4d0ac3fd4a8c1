package attachdetach

import (
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// newLeader is a manager that has just come to lead. It has nothing in its caches yet.
func newLeader(w *world) *manager {
	m := &manager{world: w, rig: fixture.New(fake.NewClientset(), noon), at: map[string]int{}, queue: map[key]bool{}, timers: map[key]time.Time{}, holds: map[key]map[string]int{}}
	if w.manager != nil {
		m.rig.Clock.SetTime(w.manager.rig.Clock.Now())
	}
	m.c = controllerOf(w.t, m.rig, Options{})
	return m
}

// list fills the cache of a kind. Each has a moment of its own, so that what the caches show
// need not go together.
func (m *manager) list(kind string) {
	for _, o := range m.all(kind) {
		_ = m.store(kind).Add(o)
	}
	m.at[kind] = len(m.log[kind])
	for _, o := range m.all(kind) {
		m.tell(kind, event{after: o, initial: true})
	}
}

// begin has the manager work: its caches are filled.
func (m *manager) begin() {
	m.leads = true
	m.c.recover()
	for _, volume := range m.c.book.all() {
		m.Add(key{volume: volume})
	}
}

func (m *manager) String() string {
	if m.former() {
		return "former manager"
	}
	return "manager"
}

// former reports whether another one leads by now.
func (m *manager) former() bool { return m.world.manager != m }

// restart has another process follow one that was killed.
func (m *manager) restart() {
	if m.former() {
		m.say("former manager: killed")
		m.world.former = nil
		return
	}
	m.say("manager: killed")
	m.world.manager = newManager(m.world)
}

// depose has another process take over from one that does not know it yet: what it has
// begun to write it writes, and it goes on for a moment with the caches that it has.
func (m *manager) depose() {
	if m.former() {
		return
	}
	m.say("another manager takes over")
	w := m.world
	w.former, w.left = m, w.chance.IntN(12)
	w.manager = newLeader(w)
}

// goOn is a turn of the one that led before.
func (w *world) goOn() bool {
	former := w.former
	if former == nil {
		return false
	}
	if w.left == 0 {
		w.say("former manager: ends")
		w.former = nil
		return true
	}
	w.left--
	if w.chance.IntN(3) == 0 && former.deliver() {
		return true
	}
	former.turn()
	return true
}
