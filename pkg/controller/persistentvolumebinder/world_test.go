package persistentvolumebinder

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// world is an API server, users who make and delete claims, and managers that are behind,
// are killed between any two writes, lose answers, and write side by side.
type world struct {
	*testworld.World
	*fixture.Server
	t        *testing.T
	volumes  map[string]*corev1.PersistentVolume
	claims   map[string]*corev1.PersistentVolumeClaim
	managers []*manager
	made     int
	deleted  int
	turned   bool
	now      time.Time
	backends map[types.UID]bool
	broken   string
}

type manager struct {
	*Controller
	rig                     *fixture.Rig
	volumeWatch, claimWatch *fixture.Watch
	// lives is how many writes it is from its end; -1 if that is not near.
	lives  int
	within bool
}

func newWorld(t *testing.T, seed uint64, managers, volumes int) *world {
	w := &world{World: testworld.New(seed), t: t, now: noon, volumes: map[string]*corev1.PersistentVolume{},
		claims: map[string]*corev1.PersistentVolumeClaim{}, backends: map[types.UID]bool{}}
	w.Server = fixture.NewServer(w.Rand, 0, 1)
	for i := range volumes {
		pv := volume(fmt.Sprintf("v%d", i), in(corev1.VolumePending), holds(fmt.Sprintf("%dGi", 5+i%3)), hostPath("/tmp/a"))
		switch i % 4 {
		case 1:
			policy(deletePolicy)(pv)
		case 2:
			of("c1", "")(pv)
		}
		w.backends[pv.UID] = true
		w.putVolume(pv)
	}
	for range managers {
		m := &manager{}
		w.managers = append(w.managers, m)
		w.begin(m)
		w.Add(testworld.Actor{Name: fmt.Sprintf("manager %d", len(w.managers)), Step: func() string { return w.work(m) }},
			testworld.Actor{Name: "volume watch", Step: m.showVolume}, testworld.Actor{Name: "claim watch", Step: m.showClaim})
	}
	w.Add(testworld.Actor{Name: "user", Step: w.user}, testworld.Actor{Name: "killer", Step: w.kill}, testworld.Actor{Name: "time", Step: w.pass})
	w.Always(func() string { return w.broken })
	return w
}

// begin makes a process whose caches show what there is.
func (w *world) begin(m *manager) {
	m.rig = fixture.New(&fake.Clientset{}, w.now)
	hand := fixture.Hand(server{w, m}, silent{})
	hand.Clock = m.rig.Clock
	m.Controller, m.lives = newController(w.t, m.rig, hand, worldPlugins{w}), -1
	m.volumeWatch = fixture.NewWatch(w.Server, w.volumes, m.volumeStore)
	m.claimWatch = fixture.NewWatch(w.Server, w.claims, m.claimStore)
	for _, name := range slices.Sorted(maps.Keys(w.volumes)) {
		m.volumeChangedForClaims(runner.Change[corev1.PersistentVolume]{New: w.volumes[name]}, m.Controller.claims)
	}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		m.claimChanged(runner.Change[corev1.PersistentVolumeClaim]{New: w.claims[name]}, m.Controller.claims)
	}
}

// showVolume and showClaim are what the informers of a manager do with a change.
func (m *manager) showVolume() string {
	what := m.volumeWatch.Show()
	if what != "" {
		m.volumeChangedForClaims(fixture.Change[corev1.PersistentVolume](m.volumeWatch.At(m.volumeWatch.Seen-1)), m.Controller.claims)
	}
	return what
}

func (m *manager) showClaim() string {
	what := m.claimWatch.Show()
	if what != "" {
		m.claimChanged(fixture.Change[corev1.PersistentVolumeClaim](m.claimWatch.At(m.claimWatch.Seen-1)), m.Controller.claims)
	}
	return what
}

// work reconciles keys in some order up to the first that comes to something.
func (w *world) work(m *manager) string {
	if m.lives == 0 {
		w.begin(m)
		return "began again"
	}
	for _, do := range w.keys(m) {
		before, running, failures := w.Version, len(m.ledger.running), len(m.ledger.failures)
		what, err := do()
		switch {
		case m.lives == 0:
			return "was killed in " + what
		case err != nil:
			return fmt.Sprintf("%s: %v", what, err)
		case w.Version != before, len(m.ledger.running) != running, len(m.ledger.failures) != failures:
			return what + " " + w.looks()
		}
	}
	return ""
}

func (w *world) keys(m *manager) []func() (string, error) {
	var all []func() (string, error)
	for _, name := range slices.Sorted(slices.Values(m.volumeStore.ListKeys())) {
		all = append(all, func() (string, error) {
			if len(m.Controller.volumes.Behind(name)) > 0 {
				return name, nil
			}
			return name, m.Controller.volumes.Reconcile(context.Background(), name).Err()
		})
	}
	for _, name := range slices.Sorted(slices.Values(m.claimStore.ListKeys())) {
		key := types.NamespacedName{Namespace: "ns", Name: name[len("ns/"):]}
		all = append(all, func() (string, error) {
			if len(m.Controller.claims.Behind(key)) > 0 {
				return name, nil
			}
			return name, m.Controller.claims.Reconcile(context.Background(), key).Err()
		})
	}
	for _, op := range slices.SortedFunc(maps.Keys(m.ledger.running), func(a, b operation) int { return len(a.String()) - len(b.String()) }) {
		all = append(all, func() (string, error) { return op.String(), m.perform(context.Background(), op).Err() })
	}
	w.Rand.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func (w *world) kill() string {
	m := w.managers[w.Rand.IntN(len(w.managers))]
	if w.made == 12 || m.lives >= 0 {
		return ""
	}
	m.lives = 1 + w.Rand.IntN(5)
	return fmt.Sprintf("due after %d writes", m.lives-1)
}

// pass lets the pause of a failed operation end.
func (w *world) pass() string {
	for _, m := range w.managers {
		for _, p := range m.ledger.paused {
			if p.until.After(w.now) {
				w.now = w.now.Add(3 * time.Minute)
				for _, m := range w.managers {
					m.rig.Clock.SetTime(w.now)
				}
				return "passed"
			}
		}
	}
	return ""
}

// user makes claims and deletes some, and changes a policy once.
func (w *world) user() string {
	if w.made == 12 {
		return ""
	}
	names := slices.Sorted(maps.Keys(w.claims))
	switch n := w.Rand.IntN(5); {
	case n == 0 && len(names) > 0:
		name := names[w.Rand.IntN(len(names))]
		fixture.Remove(w.Server, w.claims, name)
		w.deleted++
		return "deleted " + name
	case n == 1 && !w.turned:
		w.turned = true
		if pv := w.volumes["v1"]; pv != nil {
			pv = pv.DeepCopy()
			policy(retainPolicy)(pv)
			w.putVolume(pv)
			return "wants v1 to be retained"
		}
	}
	name := fmt.Sprintf("c%d", w.Rand.IntN(8))
	if w.claims[name] != nil {
		return "thinks"
	}
	w.made++
	c := claim(name)
	c.UID = types.UID(fmt.Sprintf("claim-%d", w.made))
	w.putClaim(c)
	return "made " + name
}

func (w *world) putVolume(pv *corev1.PersistentVolume) *corev1.PersistentVolume {
	return fixture.Put(w.Server, w.volumes, pv)
}

func (w *world) putClaim(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	return fixture.Put(w.Server, w.claims, c)
}

func (w *world) looks() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(w.volumes)) {
		pv := w.volumes[name]
		all = append(all, volumeInWords(pv, "")[0]+" "+string(pv.Status.Phase))
	}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		all = append(all, name+"="+w.claims[name].Spec.VolumeName)
	}
	return fmt.Sprint(all)
}

// server is the API server as one manager meets it.
type server struct {
	*world
	m *manager
}

func (s server) Invokes(a ktesting.Action, _ runtime.Object) (runtime.Object, error) {
	_, object, err := s.handle(s.m, a)
	return object, err
}

type silent struct{}

func (silent) Event(runtime.Object, string, string, string) {}

// handle is the API server.
func (w *world) handle(m *manager, a ktesting.Action) (bool, runtime.Object, error) {
	if m.lives == 0 {
		return true, nil, fixture.ErrKilled
	}
	if get, is := a.(ktesting.GetAction); is && a.GetVerb() == "get" {
		return w.get(get)
	}
	if !m.within && w.Rand.IntN(4) == 0 { // another worker of the same manager
		m.within = true
		w.work(m)
		m.within = false
		if m.lives == 0 {
			return true, nil, fixture.ErrKilled
		}
	}
	if m.lives > 0 {
		if m.lives--; m.lives == 0 && w.Rand.IntN(2) == 0 {
			return true, nil, fixture.ErrKilled // killed before the write, or after it
		}
	}
	object, err := w.write(a)
	if err == nil && (m.lives == 0 || w.made < 12 && w.Rand.IntN(12) == 0) {
		return true, nil, fixture.ErrKilled
	}
	return true, object, err
}

func (w *world) get(a ktesting.GetAction) (bool, runtime.Object, error) {
	if a.GetResource().Resource == "persistentvolumes" {
		pv, err := fixture.Named(w.volumes, a, a.GetName())
		return true, pv, err
	}
	c, err := fixture.Named(w.claims, a, a.GetName())
	return true, c, err
}

func (w *world) write(a ktesting.Action) (runtime.Object, error) {
	if d, is := a.(ktesting.DeleteActionImpl); is {
		pv, err := fixture.Deleted(w.volumes, d)
		if err == nil {
			w.judgeDeletion(pv)
			fixture.Remove(w.Server, w.volumes, pv.Name)
		}
		return nil, err
	}
	u, is := a.(ktesting.UpdateAction)
	if !is {
		w.broken = "nobody asked for " + a.GetVerb()
		return nil, fixture.ErrKilled
	}
	status := a.GetSubresource() == "status"
	switch u.GetObject().(type) {
	case *corev1.PersistentVolume:
		live, o, err := fixture.Updated(w.volumes, u)
		if err != nil {
			return nil, err
		}
		after, from := o.DeepCopy(), live
		if status {
			after, from = live.DeepCopy(), o
		}
		after.Status = *from.Status.DeepCopy()
		w.judgeVolume(live, after)
		return w.putVolume(after), nil
	case *corev1.PersistentVolumeClaim:
		live, o, err := fixture.Updated(w.claims, u)
		if err != nil {
			return nil, err
		}
		after, from := o.DeepCopy(), live
		if status {
			after, from = live.DeepCopy(), o
		}
		after.Status = *from.Status.DeepCopy()
		w.judgeClaim(live, after)
		return w.putClaim(after), nil
	}
	return nil, fixture.ErrKilled
}
