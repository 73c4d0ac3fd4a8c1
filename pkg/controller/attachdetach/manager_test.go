package attachdetach

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// manager plays the controller with caches that follow the log of the server event by
// event, and carries its plans out as the kit does.
type manager struct {
	*world
	c      *Controller
	rig    *fixture.Rig
	at     map[string]int // how much of the log the cache of a kind has
	queue  map[key]bool
	timers map[key]time.Time
	holds  map[key]map[string]int
	// leads: its caches are filled, and it has begun to work.
	leads bool
}

var (
	errKilled = errors.New("killed")
	errLost   = errors.New("the answer is lost")
	errFenced = errors.New("another one leads")
)

// newManager is one that leads.
func newManager(w *world) *manager {
	m := newLeader(w)
	for _, kind := range kinds {
		m.list(kind)
	}
	m.begin()
	return m
}

func controllerOf(t testing.TB, rig *fixture.Rig, o Options) *Controller {
	core, storage := rig.In.Core().V1(), rig.In.Storage().V1()
	c, err := New(Informers{
		Pods: core.Pods(), Nodes: core.Nodes(), Claims: core.PersistentVolumeClaims(), PVs: core.PersistentVolumes(),
		Attachments: storage.VolumeAttachments(), Drivers: storage.CSIDrivers(),
	}, rig.Hand(), o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (m *manager) store(kind string) toolscache.Store {
	return map[string]toolscache.Store{podsKind: m.c.pods, nodesKind: m.c.nodes, claimsKind: m.c.claims, pvsKind: m.c.pvs, vasKind: m.c.attachments}[kind]
}

// Add wakes a key.
func (m *manager) Add(k key) { m.queue[k] = true }

// AddAfter wakes a key later.
func (m *manager) AddAfter(k key, d time.Duration) { m.timers[k] = m.rig.Clock.Now().Add(d) }

// deliver brings one event to the cache of one kind.
func (m *manager) deliver() bool {
	for _, i := range m.chance.Perm(len(kinds)) {
		kind := kinds[i]
		at, listed := m.at[kind]
		if !listed {
			m.list(kind)
			return true
		}
		if at == len(m.log[kind]) {
			continue
		}
		e := m.log[kind][at]
		m.at[kind]++
		if e.after != nil {
			_ = m.store(kind).Add(e.after)
		} else {
			_ = m.store(kind).Delete(e.before)
		}
		m.tell(kind, e)
		return true
	}
	if !m.leads {
		m.begin()
		return true
	}
	return false
}

func (m *manager) tell(kind string, e event) {
	switch kind {
	case podsKind:
		m.c.podChanged(changed[corev1.Pod](e), m)
	case nodesKind:
		m.c.nodeChanged(changed[corev1.Node](e), m)
	case claimsKind:
		m.c.claimChanged(changed[corev1.PersistentVolumeClaim](e), m)
	case pvsKind:
		pvChanged(changed[corev1.PersistentVolume](e), m)
	case vasKind:
		m.c.attachmentChanged(changed[storagev1.VolumeAttachment](e), m)
	}
}

func changed[T any](e event) runner.Change[T] {
	old, _ := any(e.before).(*T)
	now, _ := any(e.after).(*T)
	return runner.Change[T]{Old: old, New: now, Initial: e.initial}
}

// held reports whether the caches do not show yet what a key wrote.
func (m *manager) held(k key) bool {
	for kind, version := range m.holds[k] {
		seen := m.at[kind] > 0 && m.log[kind][m.at[kind]-1].version >= version
		if !seen {
			return true
		}
	}
	delete(m.holds, k)
	return false
}

// turn reconciles one of the keys that are awake.
func (m *manager) turn() bool {
	if !m.leads {
		return false
	}
	keys := slices.DeleteFunc(slices.Collect(maps.Keys(m.queue)), m.held)
	if len(keys) == 0 {
		return false
	}
	slices.SortFunc(keys, func(a, b key) int { return slices.Compare([]byte(a.String()), []byte(b.String())) })
	k := keys[m.chance.IntN(len(keys))]
	delete(m.queue, k)
	if m.troubles > 0 && m.chance.IntN(60) == 0 {
		m.restart()
		return true
	}
	o, err := m.c.observe(m.t.Context(), k)
	if err != nil {
		if !errors.Is(err, reconcile.ErrAbsent) {
			m.t.Fatal(err)
		}
		return true
	}
	p := plan(o, m.rig.Clock.Now())
	m.say("%s: %s: %s", m, k, p.Why)
	m.inTurn(o.volume, p)
	results, err := m.stages(k, p.Stages)
	if errors.Is(err, errKilled) {
		m.restart()
		return true
	}
	m.settleTurn(k, p, results)
	return true
}

// inTurn holds that a volume is neither attached to a node nor refused to it before it leaves
// those that it may leave now.
func (m *manager) inTurn(v *volumeView, p act.Plan) {
	if v == nil {
		return
	}
	after := p.Note(nil).(noted)
	attaches := slices.ContainsFunc(slices.Collect(maps.Keys(v.wants)), func(node string) bool {
		return v.pairs[node].op.kind == none && after.pairs[node].op.kind == attachKind
	})
	if !attaches && !strings.Contains(steps(p.Stages), "Multi-Attach") {
		return
	}
	for node, old := range v.pairs {
		f := v.nodes[node]
		free := !f.inUse && !(old.assumed && old.seen == f.seen) && !m.pauses(v.backoffs[""]) && !m.pauses(after.backoffs[""])
		refused := old.leaving && f.failed >= old.left
		if len(v.wants[node]) == 0 && old.state != absent && old.op.kind == none && free && !refused {
			m.break_("%s may leave %s first: %s", v.name, node, p.Why)
		}
	}
}

// pauses reports whether a detach from any node waits, since one has failed.
func (m *manager) pauses(b backoff) bool {
	return b.kind == detachKind && m.rig.Clock.Now().Before(b.until)
}

func (m *manager) settleTurn(k key, p act.Plan, results act.Results) {
	switch n := p.Note(results).(type) {
	case noted:
		for _, node := range m.c.book.put(k.volume, n.record, n.unsure...) {
			m.Add(key{node: node})
		}
		if n.again {
			m.Add(k)
		}
	case reported:
		for _, volume := range m.c.book.written(k.node, n) {
			m.Add(key{volume: volume})
		}
	}
	delete(m.timers, k)
	if !p.RequeueAt.IsZero() && k.node == "" {
		m.timers[k] = p.RequeueAt
	}
	failed := results.Err()
	if p.Retry != nil {
		failed = p.Retry(results)
	}
	if failed != nil {
		m.timers[k] = m.rig.Clock.Now().Add(firstPause)
	}
}

// next moves the clock to the next timer.
func (m *manager) next() bool {
	var first time.Time
	for _, at := range m.timers {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	if first.IsZero() {
		return false
	}
	m.rig.Clock.SetTime(first)
	for k, at := range m.timers {
		if !at.After(first) {
			delete(m.timers, k)
			m.Add(k)
		}
	}
	return true
}

func (m *manager) stages(k key, stages []act.Stage) (all act.Results, err error) {
	failed := false
	for _, stage := range stages {
		for _, step := range stage.Steps {
			if part, is := step.(act.Part); is {
				of, err := m.stages(k, part.Stages)
				if all = append(all, of...); err != nil {
					return all, err
				}
				continue
			}
			if failed {
				all = append(all, act.Result{Step: step, Became: act.NotBegun})
				continue
			}
			r, err := m.step(k, step)
			if all = append(all, r); err != nil {
				return all, err
			}
			if r.Err != nil {
				failed = true
			}
		}
	}
	return all, nil
}

// step takes a step as the kit does, unless something goes wrong: the process is killed
// before or after a write, or while one is under way, the answer is lost, or the write is.
func (m *manager) step(k key, step act.Step) (act.Result, error) {
	r := act.Result{Step: step, Became: act.Done}
	_, deletes := step.(act.Delete)
	if m.former() && deletes {
		m.say("   the fence holds a deletion back")
		r.Became, r.Err = act.Refused, errFenced
		return r, nil
	}
	trouble := 9
	if m.troubles > 0 {
		trouble = m.chance.IntN(40)
	}
	switch trouble {
	case 0:
		return r, errKilled
	case 1:
		m.say("   the request is lost")
		r.Became, r.Err = act.Uncertain, errLost
		return r, nil
	case 4:
		// No precondition holds a late deletion back: the object is the same. The lease does, which
		// is longer than a request may take.
		if !deletes {
			m.late = append(m.late, func() { _, _ = m.carryOut(step) })
			return r, errKilled
		}
	case 5:
		m.depose()
	}
	kind, err := m.carryOut(step)
	switch {
	case trouble == 2:
		return r, errKilled
	case trouble == 3 && kind != "":
		m.say("   the answer is lost")
		r.Became, r.Err = act.Uncertain, errLost
		return r, nil
	case err != nil:
		m.say("   %s: %s", step.Verb(), err)
		r.Became, r.Err = act.Refused, err
		return r, nil
	}
	if kind != "" {
		if m.holds[k] == nil {
			m.holds[k] = map[string]int{}
		}
		m.holds[k][kind] = m.log[kind][len(m.log[kind])-1].version
	}
	return r, nil
}

// carryOut does what a step says, and returns the kind that it wrote.
func (m *manager) carryOut(step act.Step) (string, error) {
	switch s := step.(type) {
	case act.Create:
		m.say("   create for %s", nodeOf(s))
		if err := m.create(s.Object.(*storagev1.VolumeAttachment)); err != nil && !s.MayExist {
			return "", err
		}
		return vasKind, nil
	case act.Delete:
		m.say("   delete for %s", nodeOf(s))
		_ = m.remove(s.Of.GetName(), s.Of.GetUID()) // gone is as good
		return vasKind, nil
	case act.Patch:
		m.say("   patch %s %s", s.Of.GetName(), s.Data)
		return nodesKind, m.patch(s.Of.GetName(), s.Data)
	case act.Check:
		return "", m.check(s)
	case act.Event:
		return "", nil
	}
	return "", fmt.Errorf("the manager knows no %T", step)
}

func (m *manager) check(s act.Check) error {
	if s.IsWhole != nil {
		live, _ := m.get(nodesKind, s.Of.GetName()).(client.Object)
		return s.IsWhole(live)
	}
	live, _ := m.get(vasKind, s.Of.GetName()).(metav1.Object)
	return s.Is(live)
}
