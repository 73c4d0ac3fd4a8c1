package resourceclaim

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes/fake"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// world is an API server, a manager whose caches are behind, that loses answers and is killed
// between any two writes, and users, a scheduler, kubelets and a garbage collector.
type world struct {
	*testworld.World
	*Controller
	t            *testing.T
	version      int
	pods         stored[corev1.Pod, *corev1.Pod]
	claims       stored[resourceapi.ResourceClaim, *resourceapi.ResourceClaim]
	seenPods     int
	seenClaims   int
	queue, later sets.Set[key]
	wishes       int
	faults       int
	// lives is how many writes it is from the end of the manager; -1 if that is not near.
	lives  int
	broken string
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{World: testworld.New(seed), t: t, version: 100, wishes: 60, faults: 12, lives: -1}
	w.pods.now, w.claims.now = map[string]*corev1.Pod{}, map[string]*resourceapi.ResourceClaim{}
	w.begin()
	w.World.Add(
		testworld.Actor{Name: "manager", Step: w.turn},
		testworld.Actor{Name: "watch of pods", Step: w.showPod},
		testworld.Actor{Name: "watch of claims", Step: w.showClaim},
		testworld.Actor{Name: "user", Step: w.user},
		testworld.Actor{Name: "scheduler", Step: w.schedule},
		testworld.Actor{Name: "kubelet", Step: w.kubelet},
		testworld.Actor{Name: "collector", Step: w.collect},
		testworld.Actor{Name: "killer", Step: w.kill},
		testworld.Actor{Name: "time", Step: w.pass})
	w.Always(func() string { return w.broken })
	return w
}

// begin makes a process whose caches show what there is.
func (w *world) begin() {
	rig := fixture.New(fake.NewClientset(), noon)
	hand := fixture.Hand(server{w}, silent{})
	hand.Clock = rig.Clock
	in := Caches{
		Pods: rig.In.Core().V1().Pods(), Claims: rig.In.Resource().V1().ResourceClaims(), Templates: rig.In.Resource().V1().ResourceClaimTemplates(),
	}
	c, err := New(in, hand, Options{Workers: 1})
	if err != nil {
		w.t.Fatal(err)
	}
	w.Controller, w.lives, w.queue, w.later = c, -1, sets.New[key](), sets.New[key]()
	c.Writes.LookLive(fixture.LiveOf(func(resource schema.GroupResource, _ string) ([]metav1.Object, error) { return w.live(resource), nil }))
	rig.Cache(w.t, template("gpu"), template("disk"))
	for _, name := range slices.Sorted(maps.Keys(w.pods.now)) {
		_ = c.pods.Add(w.pods.now[name])
	}
	for _, name := range slices.Sorted(maps.Keys(w.claims.now)) {
		_ = c.claims.Add(w.claims.now[name])
		c.claimChanged(runner.Change[resourceapi.ResourceClaim]{New: w.claims.now[name], Initial: true}, w)
	}
	for _, name := range slices.Sorted(maps.Keys(w.pods.now)) {
		c.podChanged(runner.Change[corev1.Pod]{New: w.pods.now[name], Initial: true}, w)
	}
	c.pods.Bookmark(strconv.Itoa(w.version))
	c.claims.Bookmark(strconv.Itoa(w.version))
	w.seenPods, w.seenClaims = len(w.pods.log), len(w.claims.log)
}

func (w *world) live(resource schema.GroupResource) []metav1.Object {
	var all []metav1.Object
	if resource.Resource == "pods" {
		for _, p := range w.pods.now {
			all = append(all, p)
		}
		return all
	}
	for _, c := range w.claims.now {
		all = append(all, c)
	}
	return all
}

type silent struct{}

func (silent) Event(runtime.Object, string, string, string) {}

// Add and AddAfter are the queue of the controller.
func (w *world) Add(k key)                       { w.queue.Insert(k) }
func (w *world) AddAfter(k key, _ time.Duration) { w.later.Insert(k) }

// turn takes a key that is not held, as the runner does.
func (w *world) turn() string {
	if w.lives == 0 {
		w.begin()
		return "began again"
	}
	free := slices.DeleteFunc(w.queue.UnsortedList(), func(k key) bool { return len(w.Behind(k)) > 0 })
	if len(free) == 0 {
		return ""
	}
	slices.SortFunc(free, func(a, b key) int { return strings.Compare(a.String(), b.String()) })
	k := free[w.Rand.IntN(len(free))]
	w.queue.Delete(k)
	result := w.Reconcile(context.Background(), k)
	if result.Err() != nil || result.After() > 0 {
		w.later.Insert(k)
	}
	return fmt.Sprint(k, " ", result.Err())
}

func (w *world) showPod() string {
	return show(w, &w.seenPods, w.pods.log, w.Controller.pods, func(c runner.Change[corev1.Pod]) { w.podChanged(c, w) })
}

func (w *world) showClaim() string {
	return show(w, &w.seenClaims, w.claims.log, w.Controller.claims, func(c runner.Change[resourceapi.ResourceClaim]) { w.claimChanged(c, w) })
}

// show delivers the next change of a watch, or all changes as after a list: what was in
// between is never seen then.
func show[T any](w *world, seen *int, log []logged[T], store toolscache.Indexer, rule func(runner.Change[T])) string {
	if *seen == len(log) {
		return ""
	}
	next := log[*seen : *seen+1]
	if w.Rand.IntN(8) == 0 {
		last := map[string]logged[T]{}
		for _, l := range log[*seen:] {
			last[l.name] = l
		}
		next = nil
		for _, name := range slices.Sorted(maps.Keys(last)) {
			next = append(next, last[name])
		}
		*seen = len(log) - 1
	}
	*seen++
	for _, l := range next {
		change := runner.Change[T]{New: l.state}
		if old, is, _ := store.GetByKey("team/" + l.name); is {
			change.Old = old.(*T)
		}
		switch {
		case l.state != nil:
			_ = store.Update(l.state)
		case change.Old != nil:
			_ = store.Delete(change.Old)
		default:
			continue
		}
		rule(change)
	}
	store.Bookmark(strconv.Itoa(log[*seen-1].version))
	return fmt.Sprintf("showed %d", len(next))
}

// user makes and deletes pods and claims, also under the names of earlier ones.
func (w *world) user() string {
	if w.wishes == 0 {
		return ""
	}
	w.wishes--
	name := fmt.Sprintf("pod-%d", w.Rand.IntN(4))
	p, mine := w.pods.now[name], w.claims.now["mine"]
	switch w.Rand.IntN(8) {
	case 0, 1, 2, 3:
		if p == nil {
			p = naming(pod("gpu", "disk"), "mine")
			p.Name, p.UID = name, types.UID(fmt.Sprint(name, "-", w.version))
			if w.Rand.IntN(4) == 0 {
				p.Spec.NodeName = "node"
			}
			w.putPod(p)
			return "made " + name
		}
		if p.Spec.NodeName == "" && w.Rand.IntN(2) == 0 {
			w.dropPod(p)
		} else {
			w.putPod(leaving(p.DeepCopy()))
		}
		return "deleted " + name
	case 4:
		if mine == nil {
			mine = claim("mine")
			mine.UID = types.UID(fmt.Sprint("mine-", w.version))
			w.putClaim(mine)
			return "made a claim"
		}
		w.deleteClaim(mine)
		return "deleted a claim"
	case 5:
		for _, n := range slices.Sorted(maps.Keys(w.claims.now)) {
			if n != "mine" && w.Rand.IntN(3) == 0 {
				w.deleteClaim(w.claims.now[n])
				return "deleted " + n
			}
		}
	case 6:
		if mine != nil && mine.Status.Allocation != nil && mine.DeletionTimestamp == nil {
			mine = mine.DeepCopy()
			if i := slices.Index(mine.Status.ReservedFor, foreign); i >= 0 {
				mine.Status.ReservedFor = slices.Delete(mine.Status.ReservedFor, i, i+1)
			} else {
				mine.Status.ReservedFor = append(mine.Status.ReservedFor, foreign)
			}
			w.putClaim(mine)
			return "had something else use a claim"
		}
	}
	return "thinks"
}

func (w *world) putPod(p *corev1.Pod) {
	w.version++
	w.pods.put(w.version, p)
}

func (w *world) dropPod(p *corev1.Pod) {
	w.version++
	w.pods.drop(w.version, p.Name)
}

// schedule reserves the claims of a pod in one step, and binds it in another.
func (w *world) schedule() string {
	for _, name := range slices.Sorted(maps.Keys(w.pods.now)) {
		p := w.pods.now[name]
		claims := w.claimsOf(p)
		if p.Spec.NodeName != "" || p.DeletionTimestamp != nil || claims == nil {
			continue
		}
		bind := true
		for _, c := range claims {
			if ref := podRef(p.Name, p.UID); c.Status.Allocation == nil || !slices.Contains(c.Status.ReservedFor, ref) {
				changed := c.DeepCopy()
				if !slices.Contains(changed.Finalizers, resourceapi.Finalizer) {
					changed.Finalizers = append(changed.Finalizers, resourceapi.Finalizer)
				}
				changed.Status.Allocation = &resourceapi.AllocationResult{}
				changed.Status.ReservedFor = append(changed.Status.ReservedFor, ref)
				w.putClaim(changed)
				bind = false
			}
		}
		if bind {
			w.putPod(on(p.DeepCopy(), "node"))
		}
		return fmt.Sprintf("%s, bound: %t", name, bind)
	}
	return ""
}

// claimsOf returns the claims of a pod when all are there and stay.
func (w *world) claimsOf(p *corev1.Pod) []*resourceapi.ResourceClaim {
	if len(p.Status.ResourceClaimStatuses) < 2 {
		return nil
	}
	var all []*resourceapi.ResourceClaim
	for _, name := range allClaimNames(p) {
		c := w.claims.now[name]
		if c == nil || c.DeletionTimestamp != nil || name != "mine" && w.ownerOf(c) != p {
			return nil
		}
		all = append(all, c)
	}
	return all
}

// kubelet runs pods to their end, and ends the deletion of those that leave.
func (w *world) kubelet() string {
	for _, name := range slices.Sorted(maps.Keys(w.pods.now)) {
		p := w.pods.now[name]
		switch {
		case p.DeletionTimestamp != nil && (done(p) || w.Rand.IntN(2) == 0):
			w.dropPod(p)
			return name + " is gone"
		case p.Spec.NodeName != "" && !done(p) && w.wishes > 0 && w.Rand.IntN(3) == 0:
			w.putPod(phase(p.DeepCopy(), corev1.PodSucceeded))
			return name + " has ended"
		case p.DeletionTimestamp != nil:
			w.putPod(p.DeepCopy())
			return name + " runs on"
		}
	}
	return ""
}

// collect deletes claims whose pods are gone.
func (w *world) collect() string {
	for _, name := range slices.Sorted(maps.Keys(w.claims.now)) {
		if c := w.claims.now[name]; c.OwnerReferences != nil && c.DeletionTimestamp == nil && w.ownerOf(c) == nil {
			w.deleteClaim(c)
			return "collected " + name
		}
	}
	return ""
}

func (w *world) kill() string {
	if w.wishes == 0 || w.lives >= 0 || w.Rand.IntN(6) != 0 {
		return ""
	}
	w.lives = 1 + w.Rand.IntN(5)
	return fmt.Sprintf("due after %d writes", w.lives-1)
}

// pass is when what was put off is due, and when live reads find out about lost answers.
func (w *world) pass() string {
	if w.lives == 0 {
		return ""
	}
	looked := false
	for k := range w.queue {
		if behind := w.Behind(k); len(behind) > 0 && w.seenPods == len(w.pods.log) && w.seenClaims == len(w.claims.log) {
			looked = !fixture.Held(context.Background(), w.Writes, k) || looked
		}
	}
	if len(w.later) == 0 && !looked {
		return ""
	}
	w.queue, w.later = w.queue.Union(w.later), sets.New[key]()
	return "time passes"
}

// amiss returns what is not as it should be in the end.
func (w *world) amiss() string {
	for _, p := range w.pods.now {
		for _, e := range ownerOfPod(p).recorded {
			if c := w.claims.now[*e.claim]; !done(p) && p.DeletionTimestamp == nil && (c == nil || w.ownerOf(c) != p) {
				return fmt.Sprintf("%s has no claim %s", p.Name, e.name)
			}
		}
		if n := len(p.Status.ResourceClaimStatuses); !done(p) && p.DeletionTimestamp == nil && n != 2 {
			return fmt.Sprintf("%s has %d claims recorded", p.Name, n)
		}
		for _, c := range w.claimsOf(p) {
			if !done(p) && p.Spec.NodeName != "" && p.DeletionTimestamp == nil && c.Status.Allocation != nil && !slices.Contains(c.Status.ReservedFor, podRef(p.Name, p.UID)) {
				return fmt.Sprintf("%s has not reserved %s", p.Name, c.Name)
			}
		}
	}
	for _, c := range w.claims.now {
		if p := w.ownerOf(c); p != nil && done(p) {
			return c.Name + " is there after its pod"
		}
		for _, ref := range c.Status.ReservedFor {
			if p := w.pods.now[ref.Name]; ref != foreign && (p == nil || p.UID != ref.UID || done(p)) {
				return fmt.Sprintf("%s is reserved for %s", c.Name, ref.UID)
			}
		}
		if c.DeletionTimestamp != nil && len(c.Status.ReservedFor) == 0 {
			return c.Name + " cannot go"
		}
	}
	return ""
}

func TestAWorldOfPodsAndClaims(t *testing.T) {
	for seed := range testworld.Seeds(t, 300) {
		w := newWorld(t, seed)
		if err := w.World.Run(10000); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if what := w.amiss(); what != "" {
			t.Fatalf("seed %d: %s\n%s", seed, what, w.Transcript())
		}
	}
}
