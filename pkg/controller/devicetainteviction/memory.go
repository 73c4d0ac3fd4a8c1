package devicetainteviction

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// appointment is the deletion of a pod that was decided on.
type appointment struct {
	uid types.UID
	// at is when the pod is to be deleted, seen when that was decided first.
	at, seen time.Time
	// rules are those that it goes for, if not for taints of slices alone.
	rules []ruleID
	// announced: its time has come and the event was sent.
	announced bool
	// leaving: somebody else has deleted the pod.
	leaving bool
	// evicted: nothing is left to do. It stays in mind until the pod is gone.
	evicted bool
	// counted: it was evicted, and counts for its rules.
	counted bool
}

// same reports whether two appointments say the same of their rules.
func (a appointment) same(b appointment) bool {
	return a.uid == b.uid && slices.Equal(a.rules, b.rules) && a.leaving == b.leaving && a.evicted == b.evicted
}

// report is what is known of a rule.
type report struct {
	uid types.UID
	// generation is that of the spec whose pods were looked at.
	generation int64
	// evicted is how many pods went for it since the start.
	evicted int
}

// memory is what this process remembers. All of it but the counts follows from the API.
type memory struct {
	mu      sync.Mutex
	booked  map[key]appointment
	reports map[string]report
}

func newMemory() *memory {
	return &memory{booked: map[key]appointment{}, reports: map[string]report{}}
}

func (m *memory) appointmentOf(k key) *appointment {
	m.mu.Lock()
	defer m.mu.Unlock()
	if a, ok := m.booked[k]; ok {
		return &a
	}
	return nil
}

// book keeps the appointment of a pod, or drops it, and returns the names of the rules
// whose reports change by that.
func (m *memory) book(k key, a *appointment) []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	before, was := m.booked[k]
	concerned := map[string]bool{}
	note := func(b appointment) {
		for _, rule := range b.rules {
			concerned[rule.name] = true
		}
	}
	switch {
	case a == nil:
		delete(m.booked, k)
		note(before)
	default:
		m.booked[k] = *a
		if was && before.same(*a) {
			return nil
		}
		note(before)
		note(*a)
		if a.counted {
			m.count(a.rules)
		}
	}
	return slices.Sorted(maps.Keys(concerned))
}

func (m *memory) count(rules []ruleID) {
	for _, rule := range rules {
		r := m.reports[rule.name]
		if r.uid != rule.uid {
			r = report{uid: rule.uid}
		}
		r.evicted++
		m.reports[rule.name] = r
	}
}

// reportOf is what is known of a rule, and the pods that are to go for one of its name.
func (m *memory) reportOf(name string) (report, []key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var waiting []key
	for k, a := range m.booked {
		if !a.evicted && slices.ContainsFunc(a.rules, func(r ruleID) bool { return r.name == name }) {
			waiting = append(waiting, k)
		}
	}
	return m.reports[name], waiting
}

// looked notes that the pods of a rule in this generation were looked at.
func (m *memory) looked(name string, uid types.UID, generation int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	r := m.reports[name]
	if r.uid != uid {
		r = report{uid: uid}
	}
	r.generation = generation
	m.reports[name] = r
}

func (m *memory) forget(rule string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.reports, rule)
}
