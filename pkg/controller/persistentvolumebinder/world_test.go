package persistentvolumebinder

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var errCut = errors.New("the connection was reset")

// world is an API server, users who make and delete claims, and managers that are behind,
// are killed between any two writes, lose answers, and write side by side.
type world struct {
	*testworld.World
	t        *testing.T
	version  int
	volumes  map[string]*corev1.PersistentVolume
	claims   map[string]*corev1.PersistentVolumeClaim
	log      []change
	managers []*manager
	made     int
	deleted  int
	turned   bool
	now      time.Time
	backends map[types.UID]bool
	broken   string
}

// change is one of an object, as watches show it.
type change struct {
	volume, volumeGone *corev1.PersistentVolume
	claim, claimGone   *corev1.PersistentVolumeClaim
}

type manager struct {
	*Controller
	rig  *fixture.Rig
	seen int
	// lives is how many writes it is from its end; -1 if that is not near.
	lives  int
	within bool
}

func newWorld(t *testing.T, seed uint64, managers, volumes int) *world {
	w := &world{World: testworld.New(seed), t: t, version: 100, now: noon, volumes: map[string]*corev1.PersistentVolume{},
		claims: map[string]*corev1.PersistentVolumeClaim{}, backends: map[types.UID]bool{}}
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
			testworld.Actor{Name: "watch", Step: func() string { return w.show(m) }})
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
	m.Controller, m.lives, m.seen = newController(w.t, m.rig, hand, worldPlugins{w}), -1, len(w.log)
	for _, name := range slices.Sorted(maps.Keys(w.volumes)) {
		m.take(change{volume: w.volumes[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		m.take(change{claim: w.claims[name]})
	}
}

// take is what the informers of a manager do with a change.
func (m *manager) take(c change) {
	switch {
	case c.volume != nil:
		_ = m.volumeStore.Update(c.volume)
		m.volumeChangedForClaims(runner.Change[corev1.PersistentVolume]{New: c.volume}, m.Controller.claims)
	case c.volumeGone != nil:
		_ = m.volumeStore.Delete(c.volumeGone)
		m.volumeChangedForClaims(runner.Change[corev1.PersistentVolume]{Old: c.volumeGone}, m.Controller.claims)
	case c.claim != nil:
		_ = m.claimStore.Update(c.claim)
		m.claimChanged(runner.Change[corev1.PersistentVolumeClaim]{New: c.claim}, m.Controller.claims)
	case c.claimGone != nil:
		_ = m.claimStore.Delete(c.claimGone)
		m.claimChanged(runner.Change[corev1.PersistentVolumeClaim]{Old: c.claimGone}, m.Controller.claims)
	}
}

func (w *world) show(m *manager) string {
	if m.seen == len(w.log) {
		return ""
	}
	m.take(w.log[m.seen])
	m.seen++
	return "showed a change"
}

// work reconciles keys in some order up to the first that comes to something.
func (w *world) work(m *manager) string {
	if m.lives == 0 {
		w.begin(m)
		return "began again"
	}
	for _, do := range w.keys(m) {
		before, running, failures := w.version, len(m.ledger.running), len(m.ledger.failures)
		what, err := do()
		switch {
		case m.lives == 0:
			return "was killed in " + what
		case err != nil:
			return fmt.Sprintf("%s: %v", what, err)
		case w.version != before, len(m.ledger.running) != running, len(m.ledger.failures) != failures:
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
		gone := w.claims[name]
		delete(w.claims, name)
		w.version++
		w.deleted++
		w.log = append(w.log, change{claimGone: gone})
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

func (w *world) stamp(o metav1.Object) {
	w.version++
	o.SetResourceVersion(strconv.Itoa(w.version))
}

func (w *world) putVolume(pv *corev1.PersistentVolume) *corev1.PersistentVolume {
	w.stamp(pv)
	w.volumes[pv.Name] = pv
	w.log = append(w.log, change{volume: pv})
	return pv.DeepCopy()
}

func (w *world) putClaim(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	w.stamp(c)
	w.claims[c.Name] = c
	w.log = append(w.log, change{claim: c})
	return c.DeepCopy()
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
		return true, nil, errCut
	}
	if get, is := a.(ktesting.GetAction); is && a.GetVerb() == "get" {
		return w.get(get)
	}
	if !m.within && w.Rand.IntN(4) == 0 { // another worker of the same manager
		m.within = true
		w.work(m)
		m.within = false
		if m.lives == 0 {
			return true, nil, errCut
		}
	}
	if m.lives > 0 {
		if m.lives--; m.lives == 0 && w.Rand.IntN(2) == 0 {
			return true, nil, errCut // killed before the write, or after it
		}
	}
	object, err := w.write(a)
	if err == nil && (m.lives == 0 || w.made < 12 && w.Rand.IntN(12) == 0) {
		return true, nil, errCut
	}
	return true, object, err
}

func (w *world) get(a ktesting.GetAction) (bool, runtime.Object, error) {
	if pv := w.volumes[a.GetName()]; pv != nil && a.GetResource().Resource == "persistentvolumes" {
		return true, pv.DeepCopy(), nil
	}
	if c := w.claims[a.GetName()]; c != nil && a.GetResource().Resource == "persistentvolumeclaims" {
		return true, c.DeepCopy(), nil
	}
	return true, nil, apierrors.NewNotFound(a.GetResource().GroupResource(), a.GetName())
}

func (w *world) write(a ktesting.Action) (runtime.Object, error) {
	if d, is := a.(ktesting.DeleteAction); is {
		return nil, w.remove(d.GetName())
	}
	u, is := a.(ktesting.UpdateAction)
	if !is {
		w.broken = "nobody asked for " + a.GetVerb()
		return nil, errCut
	}
	switch o := u.GetObject().(type) {
	case *corev1.PersistentVolume:
		live := w.volumes[o.Name]
		if err := upToDate(live == nil, live, o); err != nil {
			return nil, err
		}
		after := o.DeepCopy()
		if a.GetSubresource() == "status" {
			after = live.DeepCopy()
			after.Status = *o.Status.DeepCopy()
		} else {
			after.Status = live.Status
		}
		w.judgeVolume(live, after)
		return w.putVolume(after), nil
	case *corev1.PersistentVolumeClaim:
		live := w.claims[o.Name]
		if err := upToDate(live == nil, live, o); err != nil {
			return nil, err
		}
		after := o.DeepCopy()
		if a.GetSubresource() == "status" {
			after = live.DeepCopy()
			after.Status = *o.Status.DeepCopy()
		} else {
			after.Status = live.Status
		}
		w.judgeClaim(live, after)
		return w.putClaim(after), nil
	}
	return nil, errCut
}

func upToDate(none bool, live, o metav1.Object) error {
	switch {
	case none:
		return apierrors.NewNotFound(corev1.Resource("x"), o.GetName())
	case live.GetResourceVersion() != o.GetResourceVersion() || live.GetUID() != o.GetUID():
		return apierrors.NewConflict(corev1.Resource("x"), o.GetName(), errors.New("changed"))
	}
	return nil
}
