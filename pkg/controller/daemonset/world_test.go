package daemonset

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	podrules "github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// kinds are the resources in the order of their watches.
var kinds = []string{"daemonsets", "controllerrevisions", "pods", "nodes"}

// world is the server, a controller whose caches lag, and whose rules hear of a
// change even later, and what else goes on.
type world struct {
	*testworld.World
	t *testing.T
	*server
	*rig
	watches     map[string]*fixture.Watch
	heard       map[string]int // how much of what the caches show the rules have heard of
	woken       bool
	look        time.Time
	nodesToLook []string
	patient     bool        // the controller replaces rejected pods ever more rarely
	rejects     func() bool // nodes reject their pods now
}

func newWorld(t *testing.T, seed uint64, ds *appsv1.DaemonSet, nodes int) *world {
	w := &world{World: testworld.New(seed), t: t, rejects: func() bool { return false }}
	w.server = newServer(w.Rand, ds, nodes)
	w.server.now = func() time.Time { return w.rig.Clock.Now() }
	w.restart()
	w.Add(testworld.Actor{Name: "controller", Step: w.reconcile},
		testworld.Actor{Name: "node look", Step: w.lookAtNode},
		testworld.Actor{Name: "kubelet", Step: w.kubelet},
		testworld.Actor{Name: "clock", Step: w.tick})
	for _, kind := range kinds {
		w.Add(testworld.Actor{Name: kind + " watch", Step: func() string { return w.watches[kind].Show() }},
			testworld.Actor{Name: kind + " rules", Step: func() string { return w.hear(kind) }})
	}
	return w
}

func (w *world) wakes() wakeUp { return wakeUp{w} }

type wakeUp struct{ w *world }

func (u wakeUp) Add(types.NamespacedName) { u.w.woken = true }

func (u wakeUp) AddAfter(types.NamespacedName, time.Duration) { u.w.woken = true }

type nodeWakeUp struct{ w *world }

func (u nodeWakeUp) Add(name string) { u.w.nodesToLook = append(u.w.nodesToLook, name) }

func (u nodeWakeUp) AddAfter(name string, _ time.Duration) { u.Add(name) }

// restart gives a controller that knows nothing but a fresh list.
func (w *world) restart() {
	now := noon
	if w.rig != nil {
		now = w.rig.Clock.Now()
	}
	client := &fake.Clientset{}
	client.AddReactor("*", "*", w.server.handle)
	w.rig = rigWith(w.t, client)
	w.daemons.Writes.LookLive(fixture.LiveBy(map[schema.GroupResource]consistency.List{
		corev1.Resource("pods"):                fixture.LiveAmong(&w.Mu, w.server.pods),
		appsv1.Resource("daemonsets"):          fixture.LiveAmong(&w.Mu, w.server.sets),
		appsv1.Resource("controllerrevisions"): fixture.LiveAmong(&w.Mu, w.server.revisions),
	}))
	w.rig.Clock.SetTime(now)
	w.rig.patient = w.patient
	w.rig.wakeSet = func(types.NamespacedName) { w.woken = true }
	w.LifeLeft = -1
	apps, core := w.In.Apps().V1(), w.In.Core().V1()
	w.heard, w.watches = map[string]int{}, map[string]*fixture.Watch{
		"daemonsets":          fixture.NewWatch(w.Server, w.server.sets, apps.DaemonSets().Informer().GetIndexer()),
		"controllerrevisions": fixture.NewWatch(w.Server, w.server.revisions, apps.ControllerRevisions().Informer().GetIndexer()),
		"pods":                fixture.NewWatch(w.Server, w.server.pods, core.Pods().Informer().GetIndexer()),
		"nodes":               fixture.NewWatch(w.Server, w.server.nodes, core.Nodes().Informer().GetIndexer()),
	}
	for _, kind := range kinds {
		w.heard[kind] = w.watches[kind].Seen
	}
	w.woken, w.look, w.nodesToLook = true, time.Time{}, nil
}

// hear tells the rules of a change that the cache shows.
func (w *world) hear(kind string) string {
	if w.heard[kind] == w.watches[kind].Seen {
		return ""
	}
	shown := w.watches[kind].At(w.heard[kind])
	w.heard[kind]++
	switch kind {
	case "daemonsets":
		w.setChanged(fixture.Change[appsv1.DaemonSet](shown), w.wakes())
	case "controllerrevisions":
		w.revisionChanged(fixture.Change[appsv1.ControllerRevision](shown), w.wakes())
	case "pods":
		w.podChanged(fixture.Change[corev1.Pod](shown), w.wakes())
	case "nodes":
		nodeChanged(fixture.Change[corev1.Node](shown), nodeWakeUp{w})
	}
	if shown.Now == nil {
		return "heard of the end of " + shown.Old.GetName()
	}
	return "heard of " + shown.Now.GetName()
}

// reconcile does what the runner does: hold the key back, or sync it.
func (w *world) reconcile() string {
	if !w.woken || fixture.Held(context.Background(), w.daemons.Writes, web) {
		return ""
	}
	before := w.Version
	w.woken = false
	result := w.sync(context.Background(), web)
	if after := result.After(); after > 0 {
		w.look = w.rig.Clock.Now().Add(after)
	}
	if w.LifeLeft == 0 {
		w.restart()
		return "crashed and started again"
	}
	if result.Err() != nil {
		w.woken = true
		return "failed: " + result.Err().Error()
	}
	return fmt.Sprintf("made %d writes, because %+v", w.Version-before, result.Plan())
}

func (w *world) lookAtNode() string {
	if len(w.nodesToLook) == 0 {
		return ""
	}
	name := w.nodesToLook[0]
	w.nodesToLook = w.nodesToLook[1:]
	w.syncNode(context.Background(), name)
	return name
}

// tick moves time on to the next planned look.
func (w *world) tick() string {
	if w.look.IsZero() || w.woken {
		return ""
	}
	if w.look.After(w.rig.Clock.Now()) {
		w.rig.Clock.SetTime(w.look)
	}
	w.look, w.woken = time.Time{}, true
	return "it is " + w.rig.Clock.Now().Format(time.TimeOnly)
}

// kubelet gives pods their node, brings them up and finishes those that go.
func (w *world) kubelet() string {
	for _, name := range slices.Sorted(maps.Keys(w.server.pods)) {
		p := w.server.pods[name].DeepCopy()
		target := w.server.nodes[nodeOf(p)]
		switch {
		case p.DeletionTimestamp != nil || target == nil && p.Spec.NodeName != "":
			fixture.Remove(w.Server, w.server.pods, name)
			return "finished " + name
		case target != nil && p.Spec.NodeName == "":
			p.Spec.NodeName, p.Spec.Affinity = target.Name, nil
			w.server.putPod(p)
			return "bound " + name
		case target != nil && p.Status.Phase == "" && w.rejects():
			p.Status.Phase, p.Status.Reason = corev1.PodFailed, "OutOfcpu"
			w.server.putPod(p)
			return "rejected " + name
		case target != nil && p.Status.Phase == "":
			p.Status.Phase = corev1.PodRunning
			readyFor(0)(p)
			p.Status.Conditions[0].LastTransitionTime.Time = w.rig.Clock.Now()
			w.server.putPod(p)
			return "started " + name
		}
	}
	return ""
}

// times is an actor that does something so many times.
func (w *world) times(name string, n int, do func() string) testworld.Actor {
	return testworld.Actor{Name: name, Step: func() string {
		if n == 0 {
			return ""
		}
		n--
		return do()
	}}
}

func (w *world) crash() string {
	w.LifeLeft = 1 + w.Rand.IntN(4)
	return fmt.Sprintf("due after %d more calls", w.LifeLeft)
}

// churn adds, takes, taints or clears a node.
func (w *world) churn() string {
	name := fmt.Sprint("n", w.Rand.IntN(8))
	there := w.server.nodes[name] != nil
	switch w.Rand.IntN(4) {
	case 0:
		w.server.putNode(node(name, tainted("x", corev1.TaintEffectNoSchedule)))
		return name + " keeps new pods off"
	case 1:
		w.server.putNode(node(name, tainted("x", corev1.TaintEffectNoExecute)))
		return name + " evicts"
	case 2:
		if there && len(w.server.nodes) > 1 {
			fixture.Remove(w.Server, w.server.nodes, name)
			return name + " goes"
		}
	}
	w.server.putNode(node(name))
	return name + " is open"
}

func (w *world) change(do setOption) string {
	ds := w.server.ds.DeepCopy()
	do(ds)
	ds.Generation++
	ds.Annotations[appsv1.DeprecatedTemplateGeneration] = strconv.FormatInt(ds.Generation, 10) // as the API server counts
	w.server.putSet(ds)
	return fmt.Sprintf("generation %d", ds.Generation)
}

// loss fails or deletes a pod that runs.
func (w *world) loss() string {
	for _, name := range slices.Sorted(maps.Keys(w.server.pods)) {
		p := w.server.pods[name].DeepCopy()
		if w.Rand.IntN(2) == 0 || !podrules.Active(p) {
			continue
		}
		if w.Rand.IntN(2) == 0 {
			p.Status.Phase = corev1.PodFailed
			unready(p)
		} else {
			leaving(p)
		}
		w.server.putPod(p)
		return "of " + name
	}
	return "of none"
}

// open reports whether a node of this world, of which the pods tolerate no taint,
// is to have a pod, and whether it may keep one.
func open(n *corev1.Node) (runs, stays bool) {
	runs, stays = true, true
	for _, taint := range n.Spec.Taints {
		switch taint.Effect {
		case corev1.TaintEffectNoSchedule:
			runs = false
		case corev1.TaintEffectNoExecute:
			runs, stays = false, false
		}
	}
	return runs, stays
}

// crowded names a node with more active pods than are allowed.
func (w *world) crowded(most int) func() string {
	return func() string {
		on := map[string]int{}
		for _, p := range w.server.pods {
			if podrules.Active(p) {
				on[nodeOf(p)]++
			}
		}
		for name, n := range on {
			if n > most {
				return fmt.Sprintf("%d pods on %s", n, name)
			}
		}
		return ""
	}
}

// end runs the world and checks that it settles on what is wanted.
func (w *world) end(seed uint64) {
	w.t.Helper()
	if err := w.Run(5000); err != nil {
		w.t.Fatalf("seed %d: %v", seed, err)
	}
	var wanted int
	for _, n := range w.server.nodes {
		have := 0
		for _, p := range w.server.pods {
			if nodeOf(p) == n.Name {
				have++
				want := w.server.ds.Spec.Template.Spec.Containers[0].Image
				if got := p.Spec.Containers[0].Image; got != want && w.server.ds.Spec.UpdateStrategy.Type != appsv1.OnDeleteDaemonSetStrategyType {
					w.t.Fatalf("seed %d: pod %s has the image %s, not %s\n%s", seed, p.Name, got, want, w.Transcript())
				}
			}
		}
		runs, stays := open(n)
		if runs {
			wanted++
		}
		if runs && have != 1 || !stays && have != 0 {
			w.t.Fatalf("seed %d: %d pods on %s\n%s", seed, have, n.Name, w.Transcript())
		}
	}
	s := w.server.ds.Status
	if int(s.DesiredNumberScheduled) != wanted || int(s.NumberAvailable) != wanted || s.ObservedGeneration != w.server.ds.Generation {
		w.t.Fatalf("seed %d: the status is %s, wanted %d\n%s", seed, statusLine(s), wanted, w.Transcript())
	}
}
