package disruption

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	podrules "github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

// world is an API server that grants evictions by the status of one budget, a
// controller whose caches lag, and whoever wants pods to go.
type world struct {
	*testworld.World
	*rig
	t        *testing.T
	version  int
	truth    *policyv1.PodDisruptionBudget
	pods     map[string]*corev1.Pod
	made     int
	evicted  int
	tooFar   string
	updates  []func() // of the cache, in order
	writes   int
	replicas int
	least    int // as the budget says
}

func newWorld(t *testing.T, seed uint64, replicas, least int) *world {
	w := &world{World: testworld.New(seed), t: t, rig: newRig(t), pods: map[string]*corev1.Pod{}, replicas: replicas, least: least}
	w.client.PrependReactor("update", "poddisruptionbudgets", w.update)
	w.putBudget(budget(minAvailable(strconv.Itoa(least))))
	w.Add(
		testworld.Actor{Name: "controller", Step: w.step},
		testworld.Actor{Name: "watch", Step: w.deliver},
		testworld.Actor{Name: "workload", Step: w.workload},
		testworld.Actor{Name: "drain", Step: w.drain})
	w.Always(func() string { return w.tooFar })
	return w
}

func (w *world) stamp(o metav1.Object) {
	w.version++
	o.SetResourceVersion(strconv.Itoa(w.version))
}

func (w *world) putBudget(b *policyv1.PodDisruptionBudget) *policyv1.PodDisruptionBudget {
	b = b.DeepCopy()
	w.stamp(b)
	w.truth = b
	w.updates = append(w.updates, func() { _ = w.budgets.Update(b) })
	return b
}

func (w *world) putPod(p *corev1.Pod) {
	p = p.DeepCopy()
	w.stamp(p)
	w.pods[p.Name] = p
	w.updates = append(w.updates, func() { _ = w.rig.pods.Update(p) })
}

// update is the API server's answer to a status of the controller.
func (w *world) update(action clienttesting.Action) (bool, runtime.Object, error) {
	sent := action.(clienttesting.UpdateAction).GetObject().(*policyv1.PodDisruptionBudget)
	switch {
	case sent.ResourceVersion != w.truth.ResourceVersion:
		return true, nil, apierrors.NewConflict(budgetResource, sent.Name, nil)
	case w.Rand.IntN(8) == 0:
		return true, nil, apierrors.NewInternalError(errors.New("not now"))
	}
	w.writes++
	changed := w.truth.DeepCopy()
	changed.Status = sent.Status
	return true, w.putBudget(changed), nil
}

// step does what the runner does: hold the key back, or sync it.
func (w *world) step() string {
	if len(w.budgetRunner.Behind(budgetKey)) > 0 {
		return ""
	}
	before := w.writes
	result := w.sync(w.t.Context(), budgetKey)
	if result.Err() != nil {
		return "failed: " + result.Err().Error()
	}
	if w.writes == before {
		return ""
	}
	return fmt.Sprintf("wrote %+v", w.truth.Status)
}

func (w *world) deliver() string {
	if len(w.updates) == 0 {
		return ""
	}
	w.updates[0]()
	w.updates = w.updates[1:]
	return "delivered"
}

// workload ends the pods that were evicted, and has others come in their place.
func (w *world) workload() string {
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		p := w.pods[name]
		switch {
		case p.DeletionTimestamp != nil:
			w.version++
			delete(w.pods, name)
			w.updates = append(w.updates, func() { _ = w.rig.pods.Delete(p) })
			return name + " is gone"
		case !podrules.Ready(p):
			w.putPod(pod(name))
			return name + " is ready"
		}
	}
	if len(w.pods) < w.replicas {
		w.made++
		w.putPod(pod(fmt.Sprint("p", w.made), unready))
		return "made a pod"
	}
	return ""
}

// drain asks for an eviction, as the API server grants it: first it counts, then
// the pod is deleted.
func (w *world) drain() string {
	names := slices.Sorted(maps.Keys(w.pods))
	b := w.truth
	if w.evicted == 10 || len(names) == 0 || b.Status.DisruptionsAllowed == 0 || b.Status.ObservedGeneration != b.Generation {
		return ""
	}
	p := w.pods[names[w.Rand.IntN(len(names))]]
	if p.DeletionTimestamp != nil || !podrules.Ready(p) {
		return ""
	}
	b = b.DeepCopy()
	b.Status.DisruptionsAllowed--
	if b.Status.DisruptedPods == nil {
		b.Status.DisruptedPods = map[string]metav1.Time{}
	}
	b.Status.DisruptedPods[p.Name] = ago(0)
	w.putBudget(b)
	w.evicted++
	p = p.DeepCopy()
	p.DeletionTimestamp = ptr.To(ago(0))
	w.putPod(p)
	if healthy := w.healthy(); healthy < w.least {
		w.tooFar = fmt.Sprintf("%d healthy pods are left of %d", healthy, w.least)
	}
	return "evicted " + p.Name
}

func (w *world) healthy() (n int) {
	for _, p := range w.pods {
		if p.DeletionTimestamp == nil && podrules.Ready(p) {
			n++
		}
	}
	return n
}

func TestAWorldOfEvictionsNeverGoesBelowTheBudget(t *testing.T) {
	for seed := range testworld.Seeds(t, 200) {
		w := newWorld(t, seed, 5, 3)
		if err := w.Run(5000); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if s := w.truth.Status; s.DisruptionsAllowed != 2 || s.CurrentHealthy != 5 || s.ExpectedPods != 5 || len(s.DisruptedPods) > 0 || w.evicted != 10 {
			t.Fatalf("seed %d: %d evictions, in the end %+v\n%s", seed, w.evicted, s, w.Transcript())
		}
	}
}
