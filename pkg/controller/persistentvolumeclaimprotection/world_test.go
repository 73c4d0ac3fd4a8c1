package persistentvolumeclaimprotection

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/pkg/protection"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// world is an API server with claims and pods, a controller whose caches lag and miss
// what comes and goes, and users, a scheduler and kubelets.
type world struct {
	*testworld.World
	*Controller
	t       *testing.T
	rig     *fixture.Rig
	version int
	claims  map[string]*corev1.PersistentVolumeClaim
	pods    map[string]*corev1.Pod
	queue   sets.Set[key]
	later   sets.Set[key]
	wishes  int
	broken  string
}

func newWorld(t *testing.T, seed uint64) *world {
	rig, c := rigged(t, false)
	w := &world{World: testworld.New(seed), Controller: c, t: t, rig: rig, wishes: 200,
		claims: map[string]*corev1.PersistentVolumeClaim{}, pods: map[string]*corev1.Pod{}, queue: sets.New[key](), later: sets.New[key]()}
	rig.Client.PrependReactor("list", "pods", w.list)
	rig.Client.PrependReactor("update", "persistentvolumeclaims", w.update)
	w.World.Add(
		testworld.Actor{Name: "controller", Step: w.turn},
		testworld.Actor{Name: "watch of claims", Step: w.showClaim},
		testworld.Actor{Name: "watch of pods", Step: w.showPod},
		testworld.Actor{Name: "user", Step: w.user},
		testworld.Actor{Name: "scheduler", Step: w.schedule},
		testworld.Actor{Name: "time", Step: w.pass})
	w.Always(func() string { return w.broken })
	return w
}

// Add and AddAfter are the queue of the controller.
func (w *world) Add(k key)                       { w.queue.Insert(k) }
func (w *world) AddAfter(k key, _ time.Duration) { w.later.Insert(k) }

func (w *world) stamp(o metav1.Object) {
	w.version++
	o.SetResourceVersion(strconv.Itoa(w.version))
}

func (w *world) list(clienttesting.Action) (bool, runtime.Object, error) {
	if w.Rand.IntN(6) == 0 {
		return true, nil, apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("not now"))
	}
	all := &corev1.PodList{}
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		all.Items = append(all.Items, *w.pods[name].DeepCopy())
	}
	return true, all, nil
}

// update takes what the controller writes, and checks that nobody loses a claim by it.
func (w *world) update(action clienttesting.Action) (bool, runtime.Object, error) {
	sent := action.(clienttesting.UpdateAction).GetObject().(*corev1.PersistentVolumeClaim).DeepCopy()
	truth := w.claims[sent.Name]
	switch {
	case truth == nil:
		return true, nil, apierrors.NewNotFound(corev1.Resource("persistentvolumeclaims"), sent.Name)
	case truth.ResourceVersion != sent.ResourceVersion || truth.UID != sent.UID:
		return true, nil, apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), sent.Name, errors.New("changed"))
	case w.Rand.IntN(8) == 0:
		return true, nil, apierrors.NewInternalError(errors.New("not now"))
	}
	w.stamp(sent)
	w.claims[sent.Name] = sent
	if sent.DeletionTimestamp != nil && len(sent.Finalizers) == 0 {
		delete(w.claims, sent.Name)
	}
	for _, p := range w.pods {
		if protection.Held(truth, Finalizer) && holds(p, truth) {
			w.broken = fmt.Sprintf("claim %s was set free while pod %s uses it", sent.Name, p.Name)
		}
	}
	return true, sent.DeepCopy(), nil
}

// held reports whether the cache does not show what was written for a key.
func (w *world) held(k key) bool {
	seen, err := reconcile.Cached[corev1.PersistentVolumeClaim](w.Controller.claims, k)
	truth := w.claims[k.Name]
	current := err != nil && truth == nil || err == nil && truth != nil && seen.ResourceVersion == truth.ResourceVersion
	return len(w.Behind(k)) > 0 && !current
}

// turn takes a key that is not held, as the runner does.
func (w *world) turn() string {
	free := slices.DeleteFunc(slices.Collect(maps.Keys(w.queue)), w.held)
	if len(free) == 0 {
		return ""
	}
	slices.SortFunc(free, func(a, b key) int { return strings.Compare(a.Name, b.Name) })
	k := free[w.Rand.IntN(len(free))]
	w.queue.Delete(k)
	result := w.Reconcile(w.t.Context(), k)
	if result.Err() != nil || result.After() > 0 {
		w.later.Insert(k)
	}
	return fmt.Sprint(k.Name, " ", result.Err())
}

// showClaim brings one claim in the cache up to what it is by now.
func (w *world) showClaim() string {
	return show(w, w.Controller.claims.Update, w.Controller.claims.Delete, cached[corev1.PersistentVolumeClaim](w.Controller.claims.List()), w.claims,
		func(change runner.Change[corev1.PersistentVolumeClaim]) {
			if change.New != nil && w.concerns(change.New) {
				w.Add(key{Namespace: "team", Name: change.New.Name})
			}
		})
}

func (w *world) showPod() string {
	return show(w, w.Controller.pods.Update, w.Controller.pods.Delete, cached[corev1.Pod](w.Controller.pods.List()), w.pods,
		func(change runner.Change[corev1.Pod]) { w.podChanged(change, w) })
}

func cached[T any](items []any) map[string]*T {
	all := map[string]*T{}
	for _, item := range items {
		all[any(item).(metav1.Object).GetName()] = item.(*T)
	}
	return all
}

// show delivers one change at random; what happened in between is never seen.
func show[T any, P interface {
	*T
	metav1.Object
}](w *world, update, remove func(any) error, seen map[string]*T, truth map[string]P, rule func(runner.Change[T])) string {
	var behind []string
	for name := range seen {
		if truth[name] == nil || truth[name].GetResourceVersion() != P(seen[name]).GetResourceVersion() {
			behind = append(behind, name)
		}
	}
	for name := range truth {
		if seen[name] == nil {
			behind = append(behind, name)
		}
	}
	if len(behind) == 0 {
		return ""
	}
	slices.Sort(behind)
	name := behind[w.Rand.IntN(len(behind))]
	change := runner.Change[T]{Old: seen[name]}
	if now := truth[name]; now != nil {
		change.New = now
		_ = update((*T)(now))
	} else {
		_ = remove(seen[name])
	}
	rule(change)
	return "showed " + name
}

// user makes, strips and deletes claims and pods, also under the names of others.
func (w *world) user() string {
	if w.wishes == 0 {
		return ""
	}
	w.wishes--
	name, target := fmt.Sprintf("pod-%d", w.Rand.IntN(4)), fmt.Sprintf("claim-%d", w.Rand.IntN(4))
	c, p := w.claims[target], w.pods[name]
	switch w.Rand.IntN(8) {
	case 0, 1:
		if c == nil {
			made := claim(target)
			made.UID = types.UID(fmt.Sprint(target, w.version))
			w.stamp(made)
			w.claims[target] = made
		}
	case 2, 3, 4:
		if c != nil && c.DeletionTimestamp == nil {
			w.change(c, func(c *corev1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{Time: noon} })
		}
	case 5:
		if p == nil {
			made := unscheduled(pod(name, naming(target)))
			made.UID = types.UID(fmt.Sprint(name, w.version))
			w.stamp(made)
			w.pods[name] = made
		}
	case 6:
		delete(w.pods, name)
	default:
		if p != nil {
			done := ended(p.DeepCopy(), corev1.PodSucceeded)
			w.stamp(done)
			w.pods[name] = done
		}
	}
	return "wished for something"
}

// change writes a claim as the API server does: without finalizers it goes at once.
func (w *world) change(c *corev1.PersistentVolumeClaim, how func(*corev1.PersistentVolumeClaim)) {
	changed := c.DeepCopy()
	how(changed)
	w.stamp(changed)
	w.claims[c.Name] = changed
	if changed.DeletionTimestamp != nil && len(changed.Finalizers) == 0 {
		delete(w.claims, c.Name)
	}
}

// schedule gives a node to a pod whose claims are there and stay.
func (w *world) schedule() string {
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		p := w.pods[name]
		c := w.claims[claimsOf(p)[0]]
		if p.Spec.NodeName == "" && p.Status.Phase == corev1.PodPending && c != nil && c.DeletionTimestamp == nil && slices.Contains(c.Finalizers, Finalizer) {
			bound := p.DeepCopy()
			bound.Spec.NodeName, bound.Status.Phase = "node", corev1.PodRunning
			w.stamp(bound)
			w.pods[name] = bound
			return "bound " + name
		}
	}
	return ""
}

// pass is when what was put off is due. A claim that only a pod holds would be put off
// without end.
func (w *world) pass() string {
	waits := func(k key) bool { return w.claims[k.Name] != nil && w.waitsForPods(w.claims[k.Name]) }
	if !slices.ContainsFunc(w.later.UnsortedList(), func(k key) bool { return !waits(k) }) {
		return ""
	}
	w.rig.Clock.Step(untilCached)
	w.queue, w.later = w.queue.Union(w.later), sets.New[key]()
	return "time passes"
}

// waitsForPods reports whether only the end of a pod can help.
func (w *world) waitsForPods(c *corev1.PersistentVolumeClaim) bool {
	return protection.Held(c, Finalizer) && holder(c, slices.Collect(maps.Values(w.pods))) != ""
}

func TestNoClaimIsLostAndNoneHangs(t *testing.T) {
	for seed := range testworld.Seeds(t, 300) {
		w := newWorld(t, seed)
		if err := w.World.Run(10000); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for name, c := range w.claims {
			user := holder(c, slices.Collect(maps.Values(w.pods)))
			if protection.Missing(c, Finalizer) || protection.Held(c, Finalizer) && user == "" {
				t.Fatalf("seed %d: claim %s hangs with finalizers %v, user %q\n%s", seed, name, c.Finalizers, user, w.Transcript())
			}
		}
	}
}
