package replicas

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/utils/ptr"

	podrules "github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// world is the server, a controller with caches that lag, and what else goes on.
type world struct {
	*testworld.World
	t *testing.T
	*server
	*bench
	podWatch, setWatch *fixture.Watch
}

func newWorld(t *testing.T, seed uint64, replicas int) *world {
	w := &world{World: testworld.New(seed), t: t}
	w.server = newServer(w.Rand, replicas)
	w.restart()
	w.Add(
		testworld.Actor{Name: "controller", Step: w.reconcile},
		testworld.Actor{Name: "pod watch", Step: func() string { return w.podWatch.Show() }},
		testworld.Actor{Name: "set watch", Step: func() string { return w.setWatch.Show() }},
		testworld.Actor{Name: "kubelet", Step: w.kubelet},
	)
	return w
}

// restart gives a controller that knows nothing but a fresh list.
func (w *world) restart() {
	client := &fake.Clientset{}
	client.AddReactor("*", "*", w.server.handle)
	w.bench = newBench(w.t, client)
	w.bench.Writes.LookLive(fixture.LiveAmong(&w.Mu, w.server.pods))
	w.LifeLeft = -1
	w.podWatch = fixture.NewWatch(w.Server, w.server.pods, w.bench.pods.GetIndexer())
	w.setWatch = fixture.NewWatch(w.Server, w.server.sets(), w.bench.sets.GetIndexer())
}

// reconcile does what the runner does: hold the key back, or sync it.
func (w *world) reconcile() string {
	if fixture.Held(context.Background(), w.Writes, key) {
		return ""
	}
	before := w.Version
	result := w.Reconcile(context.Background(), key)
	if w.LifeLeft == 0 {
		w.restart()
		return "crashed and started again"
	}
	if result.Err() != nil {
		return "failed: " + result.Err().Error()
	}
	if w.Version == before {
		return ""
	}
	return fmt.Sprintf("made %d writes; %d active", w.Version-before, w.server.active())
}

// kubelet brings pods up and finishes those that have to go.
func (w *world) kubelet() string {
	for _, name := range sorted(w.server.pods) {
		p := w.server.pods[name]
		switch {
		case p.DeletionTimestamp != nil:
			fixture.Remove(w.Server, w.server.pods, name)
			return "finished " + p.Name
		case p.Status.Phase == "":
			p = p.DeepCopy()
			p.Status.Phase = corev1.PodRunning
			ready(ago(0))(p)
			w.server.put(p)
			return "started " + p.Name
		}
	}
	return ""
}

// times is an actor that does something so many times to a random pod of the set.
func (w *world) times(name string, n int, do func(p *corev1.Pod) string) testworld.Actor {
	return testworld.Actor{Name: name, Step: func() string {
		var candidates []*corev1.Pod
		for _, name := range sorted(w.server.pods) {
			if p := w.server.pods[name]; podrules.Active(p) && metav1.IsControlledBy(p, w.server.rs) {
				candidates = append(candidates, p.DeepCopy())
			}
		}
		if n == 0 || len(candidates) == 0 {
			return ""
		}
		n--
		return do(candidates[w.Rand.IntN(len(candidates))])
	}}
}

func (w *world) crash(n int) testworld.Actor {
	return w.times("crash", n, func(*corev1.Pod) string {
		w.LifeLeft = 1 + w.Rand.IntN(3)
		return fmt.Sprintf("due after %d more calls", w.LifeLeft)
	})
}

func (w *world) lose(n int) testworld.Actor {
	return w.times("loss", n, func(p *corev1.Pod) string {
		if w.Rand.IntN(2) == 0 {
			p.Status.Phase = corev1.PodFailed
		} else {
			p.DeletionTimestamp = ptr.To(ago(0))
		}
		w.server.put(p)
		return p.Name
	})
}

// end runs the world and checks that it settles on what is wanted.
func (w *world) end(seed uint64) {
	w.t.Helper()
	if err := w.Run(2000); err != nil {
		w.t.Fatalf("seed %d: %v", seed, err)
	}
	want, status := int(*w.server.rs.Spec.Replicas), w.server.rs.Status
	if w.server.active() != want || int(status.Replicas) != want || int(status.ReadyReplicas) != want || *status.TerminatingReplicas != 0 {
		w.t.Fatalf("seed %d: wanted %d pods, have %d; status %+v\n%s", seed, want, w.server.active(), status, w.Transcript())
	}
}

func TestAWorldOfLossesNeverHasAPodTooMany(t *testing.T) {
	const replicas = 5
	for seed := range testworld.Seeds(t, 200) {
		w := newWorld(t, seed, replicas)
		w.Add(w.crash(3), w.lose(6))
		w.Always(
			func() string {
				if n := w.server.active(); n > replicas {
					return fmt.Sprintf("%d pods instead of %d", n, replicas)
				}
				return ""
			},
			func() string {
				if w.server.deleted > 0 {
					return "a pod was deleted although there were never too many"
				}
				return ""
			})
		w.end(seed)
	}
}

func TestAWorldThatIsScaledSettlesAndLeavesOtherPodsAlone(t *testing.T) {
	for seed := range testworld.Seeds(t, 200) {
		w := newWorld(t, seed, 4)
		most := 4
		other := pod("foreign", ownedBy("another"))
		w.server.put(other)
		orphans := 0
		w.Add(w.crash(2), w.lose(3),
			w.times("user", 5, func(*corev1.Pod) string {
				rs := w.server.rs.DeepCopy()
				rs.Spec.Replicas = ptr.To(int32(1 + w.Rand.IntN(8)))
				rs.Generation++
				most = max(most, int(*rs.Spec.Replicas))
				w.server.putSet(rs)
				return fmt.Sprintf("scaled to %d", *rs.Spec.Replicas)
			}),
			w.times("relabel", 2, func(p *corev1.Pod) string {
				p.Labels = map[string]string{"app": "debug"}
				w.server.put(p)
				return p.Name
			}),
			w.times("orphan", 2, func(*corev1.Pod) string {
				orphans++
				w.server.put(pod(fmt.Sprintf("orphan-%d", orphans)))
				return "appeared"
			}))
		w.Always(
			func() string {
				if n := w.server.active(); n > most+orphans {
					return fmt.Sprintf("%d pods, but never more than %d wanted and %d adopted", n, most, orphans)
				}
				return ""
			},
			func() string {
				if p := w.server.pods["foreign"]; p == nil || p.DeletionTimestamp != nil || p.OwnerReferences[0].UID != "another" {
					return "the pod of another set was touched"
				}
				return ""
			})
		w.end(seed)
	}
}

func TestAWorldThatShrinksNeverLosesAPodTooMany(t *testing.T) {
	for seed := range testworld.Seeds(t, 200) {
		w := newWorld(t, seed, 8)
		w.Faults = 0
		shrink := 2
		w.Add(w.crash(2),
			w.times("user", 2, func(*corev1.Pod) string {
				rs := w.server.rs.DeepCopy()
				shrink++
				rs.Spec.Replicas = ptr.To(*rs.Spec.Replicas - int32(shrink))
				w.server.putSet(rs)
				return fmt.Sprintf("scaled to %d", *rs.Spec.Replicas)
			}),
			w.times("probe", 20, func(p *corev1.Pod) string {
				p.Status.Phase = corev1.PodRunning
				since := ago(time.Duration(w.Rand.IntN(1000)) * time.Second)
				if ready(since)(p); w.Rand.IntN(2) == 0 {
					unready(p)
				}
				w.server.put(p)
				return p.Name
			}))
		w.Always(func() string {
			if w.server.tooFar {
				return "a deletion left fewer pods than wanted"
			}
			return ""
		})
		if err := w.Run(2000); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func sorted(pods map[string]*corev1.Pod) []string { return slices.Sorted(maps.Keys(pods)) }
