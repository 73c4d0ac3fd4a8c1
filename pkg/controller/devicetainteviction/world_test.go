package devicetainteviction

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

// facts are what a pod's fate depends on, in the words of the world. There is one on the
// server, and one that the caches of the controller show.
type facts struct {
	tainted, ruled *time.Time // since when the device has the taint of its slice, and of a rule
	pods           map[string]fact
}

type fact struct {
	uid       types.UID
	tolerates int // seconds; -1 is without end
	reserved  bool
	leaving   bool
}

// due is when a pod has to go, by the words of the API; nil for never.
func (f facts) due(name string) *time.Time {
	p, there := f.pods[name]
	if !there || !p.reserved || p.tolerates < 0 {
		return nil
	}
	var due *time.Time
	for _, since := range []*time.Time{f.tainted, f.ruled} {
		if since == nil {
			continue
		}
		if at := since.Add(time.Duration(p.tolerates) * time.Second); due == nil || at.Before(*due) {
			due = &at
		}
	}
	return due
}

// world is an API server, users who change taints, tolerations, reservations and pods, a
// clock, and a controller whose caches are behind and which is killed.
type world struct {
	*testworld.World
	t          *testing.T
	rig        *rig
	now        time.Time
	live, seen facts
	version    int
	acts       int // that users still do
	updates    []func()
	woken      wakes[key]
	rules      wakes[string]
	looks      map[key]time.Time
	deletes    map[types.UID]int
	broken     string
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{World: testworld.New(seed), t: t, now: noon, acts: 25, deletes: map[types.UID]int{}, live: facts{pods: map[string]fact{}}}
	for _, name := range []string{"a", "b"} {
		w.put(name, fact{uid: types.UID("first-" + name), tolerates: 5, reserved: true})
	}
	w.start()
	w.Add(
		testworld.Actor{Name: "pods", Step: w.podStep}, testworld.Actor{Name: "rules", Step: w.ruleStep}, testworld.Actor{Name: "watch", Step: w.deliver},
		testworld.Actor{Name: "user", Step: w.user}, testworld.Actor{Name: "kubelet", Step: w.kubelet}, testworld.Actor{Name: "clock", Step: w.tick})
	w.Always(func() string { return w.broken })
	return w
}

// start makes a controller whose caches show what there is.
func (w *world) start() {
	w.rig = newRig(w.t)
	w.rig.Clock.SetTime(w.now)
	w.updates, w.woken, w.rules, w.looks = nil, wakes[key]{}, wakes[string]{}, map[key]time.Time{}
	w.seen = facts{tainted: w.live.tainted, ruled: w.live.ruled, pods: maps.Clone(w.live.pods)}
	w.rig.Cache(w.t, w.slice())
	for name := range w.live.pods {
		w.rig.Cache(w.t, w.pod(name), w.claim(name))
		w.woken.Add(worldKey(name))
	}
	if w.live.ruled != nil {
		w.rig.Cache(w.t, w.rule())
		w.rules.Add("r")
	}
	w.rig.Client.PrependReactor("get", "pods", w.serve)
	w.rig.Client.PrependReactor("patch", "pods", w.serve)
	w.rig.Client.PrependReactor("delete", "pods", w.remove)
	w.rig.Client.PrependReactor("patch", "devicetaintrules", func(clienttesting.Action) (bool, runtime.Object, error) {
		if w.Rand.IntN(4) == 0 {
			return true, nil, apierrors.NewTooManyRequests("not now", 0)
		}
		return true, w.rule(), nil
	})
}

func worldKey(name string) key { return key{Namespace: "ns", Name: name} }

func (w *world) stamp() string {
	w.version++
	return strconv.Itoa(w.version)
}

func (w *world) put(name string, f fact) { w.live.pods[name] = f }

func (w *world) pod(name string) *corev1.Pod {
	p := pod(name)
	f := w.live.pods[name]
	p.UID, p.ResourceVersion = f.uid, w.stamp()
	p.Spec.ResourceClaims[0].ResourceClaimName = &name
	if f.leaving {
		p = leaving(p)
	}
	return p
}

func (w *world) claim(name string) *resourcev1.ResourceClaim {
	f := w.live.pods[name]
	c := claim()
	c.Name, c.UID, c.ResourceVersion = name, types.UID("claim-"+name), w.stamp()
	c.Status.ReservedFor = nil
	if f.reserved {
		c.Status.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: name, UID: f.uid}}
	}
	toleration := tolerateFor("", int64(f.tolerates))
	if f.tolerates < 0 {
		toleration = tolerate("")
	}
	c.Status.Allocation.Devices.Results[0].Tolerations = []resourcev1.DeviceToleration{toleration}
	return c
}

func (w *world) slice() *resourcev1.ResourceSlice {
	s := slice("s", 1, device("x"))
	s.ResourceVersion = w.stamp()
	if w.live.tainted != nil {
		t := broken("a")
		t.TimeAdded = &metav1.Time{Time: *w.live.tainted}
		s.Spec.Devices[0].Taints = []resourcev1.DeviceTaint{t}
	}
	return s
}

func (w *world) rule() *resourcev1beta2.DeviceTaintRule {
	r := rule("r", "d/*/*", "NoExecute")
	r.ResourceVersion = w.stamp()
	if w.live.ruled != nil {
		r.UID = types.UID(w.live.ruled.String())
		r.Spec.Taint.TimeAdded = &metav1.Time{Time: *w.live.ruled}
	}
	return r
}

// shows lets the caches show, later, an object as it is now and what the world says of it.
func shows[T any, P interface {
	*T
	runtime.Object
	metav1.Object
}](w *world, object P, gone bool, store interface {
	GetByKey(string) (any, bool, error)
	Update(any) error
	Delete(any) error
}, of string, rule func(runner.Change[T]), then func(seen *facts)) {
	w.updates = append(w.updates, func() {
		change := runner.Change[T]{New: object}
		if item, exists, _ := store.GetByKey(of); exists {
			change.Old = item.(*T)
		}
		if gone {
			if change.New = nil; change.Old == nil {
				return
			}
			_ = store.Delete((*T)(object)) // of the version that went
		} else {
			_ = store.Update((*T)(object))
		}
		then(&w.seen)
		rule(change)
	})
}

func (w *world) showPod(name string, gone bool) {
	f := w.live.pods[name]
	shows(w, w.pod(name), gone, w.rig.pods, worldKey(name).String(), func(c runner.Change[corev1.Pod]) { w.rig.wakePod(c, w.woken) }, func(seen *facts) {
		if gone {
			delete(seen.pods, name)
			return
		}
		p := seen.pods[name]
		p.uid, p.leaving = f.uid, f.leaving
		p.reserved = p.reserved && seen.pods[name].uid == f.uid
		seen.pods[name] = p
	})
}

func (w *world) showClaim(name string) {
	f := w.live.pods[name]
	shows(w, w.claim(name), false, w.rig.claims, worldKey(name).String(), func(c runner.Change[resourcev1.ResourceClaim]) { w.rig.wakeForClaim(c, w.woken) }, func(seen *facts) {
		p := seen.pods[name]
		p.tolerates, p.reserved = f.tolerates, f.reserved && (p.uid == f.uid)
		seen.pods[name] = p
	})
}

func (w *world) serve(action clienttesting.Action) (bool, runtime.Object, error) {
	name := action.(interface{ GetName() string }).GetName()
	_, there := w.live.pods[name]
	switch {
	case w.Rand.IntN(8) == 0:
		return true, nil, apierrors.NewTooManyRequests("not now", 0)
	case !there:
		return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
	}
	answer := w.pod(name)
	if action.GetVerb() == "patch" {
		w.showPod(name, false)
	}
	return true, answer, nil
}

// remove judges each deletion by what the controller could know.
func (w *world) remove(action clienttesting.Action) (bool, runtime.Object, error) {
	a := action.(clienttesting.DeleteActionImpl)
	f, there := w.live.pods[a.Name]
	uid := *a.DeleteOptions.Preconditions.UID
	switch {
	case w.Rand.IntN(8) == 0:
		return true, nil, apierrors.NewTooManyRequests("not now", 0)
	case !there:
		return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), a.Name)
	case uid != f.uid:
		return true, nil, apierrors.NewConflict(corev1.Resource("pods"), a.Name, fmt.Errorf("the UID is %s", f.uid))
	}
	switch due := w.seen.due(a.Name); {
	case due == nil:
		w.broken = "pod " + a.Name + " is evicted for nothing"
	case due.After(w.now):
		w.broken = fmt.Sprintf("pod %s is evicted %s before its time", a.Name, due.Sub(w.now))
	}
	if w.deletes[uid]++; w.deletes[uid] > 1 {
		w.broken = "pod " + a.Name + " is deleted twice"
	}
	if w.Rand.IntN(2) == 0 {
		f.leaving = true
		w.put(a.Name, f)
		w.showPod(a.Name, false)
	} else {
		w.gone(a.Name)
	}
	return true, nil, nil
}

func (w *world) gone(name string) {
	w.showPod(name, true)
	delete(w.live.pods, name)
}

// podStep does what the runner does: hold a key back, or reconcile it.
func (w *world) podStep() string {
	if w.Rand.IntN(40) == 0 && w.acts > 0 {
		w.start()
		return "another process"
	}
	for k, at := range w.looks {
		if !at.After(w.now) {
			w.woken.Add(k)
			delete(w.looks, k)
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(w.woken), func(a, b key) int { return strings.Compare(a.Name, b.Name) }) {
		if len(w.rig.podLoop.Behind(k)) > 0 {
			continue
		}
		delete(w.woken, k)
		result := w.rig.podLoop.Reconcile(w.t.Context(), k)
		told := w.rig.Told()
		if strings.Contains(told, "Cancelling") && w.deletes[w.seen.pods[k.Name].uid] > 0 {
			w.broken = "the deletion of pod " + k.Name + " was cancelled when it had taken place"
		}
		if result.Err() != nil {
			w.woken.Add(k)
		} else if result.After() > 0 {
			w.looks[k] = w.now.Add(result.After())
		}
		return fmt.Sprintf("looked at %s: %v, told %q", k.Name, result.Err(), told)
	}
	return ""
}

func (w *world) ruleStep() string {
	if !w.rules["r"] {
		return ""
	}
	delete(w.rules, "r")
	o, err := w.rig.observeRule(w.t.Context(), "r")
	if err != nil {
		w.t.Fatal(err)
	}
	if result := w.rig.ruleLoop.Reconcile(w.t.Context(), "r"); result.Err() != nil {
		w.rules.Add("r")
	}
	for _, k := range o.woken {
		w.woken.Add(k)
	}
	return fmt.Sprintf("woke %v", o.woken)
}

func (w *world) deliver() string {
	if len(w.updates) == 0 {
		return ""
	}
	w.updates[0]()
	w.updates = w.updates[1:]
	return "delivered"
}

// kubelet ends pods that are being deleted.
func (w *world) kubelet() string {
	for name, f := range w.live.pods {
		if f.leaving {
			w.gone(name)
			return name + " has ended"
		}
	}
	return ""
}

// tick moves the clock while somebody waits for it.
func (w *world) tick() string {
	if w.acts == 0 && len(w.looks) == 0 {
		return ""
	}
	w.now = w.now.Add(time.Duration(1+w.Rand.IntN(4)) * time.Second)
	w.rig.Clock.SetTime(w.now)
	return w.now.Format(time.TimeOnly)
}

func (w *world) user() string {
	if w.acts == 0 {
		return ""
	}
	w.acts--
	now := w.now
	name := []string{"a", "b"}[w.Rand.IntN(2)]
	f, there := w.live.pods[name]
	switch act := w.Rand.IntN(7); {
	case act == 0:
		w.live.tainted = nil
		w.showSlice()
		return "takes the taint away"
	case act == 1:
		w.live.tainted = &now
		w.showSlice()
		return "taints"
	case act == 2:
		if w.live.ruled != nil {
			w.showRule(true)
			return "takes the rule away"
		}
		w.live.ruled = &now
		w.showRule(false)
		return "makes a rule"
	case !there:
		w.put(name, fact{uid: types.UID(fmt.Sprintf("%s-%d", name, w.acts)), tolerates: w.Rand.IntN(20), reserved: true})
		w.showPod(name, false)
		w.showClaim(name)
		return "makes " + name
	case f.leaving:
		return "waits"
	case act == 3:
		w.gone(name)
		return "removes " + name
	case act == 4:
		f.reserved = !f.reserved
	default:
		f.tolerates = w.Rand.IntN(20) - 1
	}
	w.put(name, f)
	w.showClaim(name)
	return fmt.Sprintf("changes %s to %+v", name, f)
}

func (w *world) showSlice() {
	since := w.live.tainted
	shows(w, w.slice(), false, w.rig.slices, "s", func(c runner.Change[resourcev1.ResourceSlice]) { w.rig.wakeForSlice(c, w.woken) },
		func(seen *facts) { seen.tainted = since })
}

func (w *world) showRule(gone bool) {
	object := w.rule()
	if gone {
		w.live.ruled = nil
	}
	since := w.live.ruled
	shows(w, object, gone, w.rig.rules, "r", func(c runner.Change[resourcev1beta2.DeviceTaintRule]) { wakeRule(c, w.rules) },
		func(seen *facts) { seen.ruled = since })
}

func TestPodsGoInTheirTimeWhateverComesBetween(t *testing.T) {
	evicted := 0
	for seed := range testworld.Seeds(t, 150) {
		w := newWorld(t, seed)
		if err := w.Run(3000); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for name, f := range w.live.pods {
			if due := w.live.due(name); due != nil && w.deletes[f.uid] == 0 {
				t.Fatalf("seed %d: pod %s %+v is there after %s at %s\n%s", seed, name, f, due, w.now, w.Transcript())
			}
		}
		evicted += len(w.deletes)
	}
	if evicted == 0 {
		t.Error("no pod was evicted in any world")
	}
}
