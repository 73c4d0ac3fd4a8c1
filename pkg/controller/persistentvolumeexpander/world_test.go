package persistentvolumeexpander

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

// world is an API server with a claim of a FlexVolume, a user who wants more, a node that
// expands the file system or gives up, and a controller that is behind and is killed.
type world struct {
	*testworld.World
	t       *testing.T
	rig     rig
	version int
	claim   *corev1.PersistentVolumeClaim
	volume  *corev1.PersistentVolume
	updates []func() // of the caches, in order
	asked   int      // Gi
	gaveUp  int
	broken  string
}

func newWorld(t *testing.T, seed uint64) *world {
	w := &world{World: testworld.New(seed), t: t, asked: 1, version: 100}
	w.put(claim("1Gi", "1Gi"))
	w.putVolume(volume("1Gi", flex))
	w.start()
	w.Add(
		testworld.Actor{Name: "controller", Step: w.step}, testworld.Actor{Name: "watch", Step: w.deliver},
		testworld.Actor{Name: "user", Step: w.user}, testworld.Actor{Name: "node", Step: w.node})
	w.Always(func() string { return w.broken })
	return w
}

// start makes a controller whose caches show what there is.
func (w *world) start() {
	w.rig = newRig(w.t, w.claim.DeepCopy(), w.volume.DeepCopy())
	w.updates = nil
	w.rig.Client.PrependReactor("patch", "persistentvolumeclaims", w.patchClaim)
	w.rig.Client.PrependReactor("patch", "persistentvolumes", w.patchVolume)
	w.rig.Client.PrependReactor("get", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) { return true, w.volume.DeepCopy(), nil })
}

func (w *world) stamp(o metav1.Object) {
	w.version++
	o.SetResourceVersion(strconv.Itoa(w.version))
}

func (w *world) put(c *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	w.stamp(c)
	w.claim = c
	w.updates = append(w.updates, func() { _ = w.rig.claims.Update(c.DeepCopy()) })
	return c.DeepCopy()
}

func (w *world) putVolume(v *corev1.PersistentVolume) *corev1.PersistentVolume {
	w.stamp(v)
	w.volume = v
	w.updates = append(w.updates, func() { _ = w.rig.volumes.Update(v.DeepCopy()) })
	return v.DeepCopy()
}

// patched is an object after a patch, if the API server takes it.
func patched[T any](w *world, object *T, action clienttesting.Action) (*T, error) {
	data := action.(clienttesting.PatchAction).GetPatch()
	var of struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(data, &of); err != nil {
		return nil, err
	}
	now, err := json.Marshal(object)
	if err != nil {
		return nil, err
	}
	is := any(object).(metav1.Object)
	switch {
	case w.Rand.IntN(8) == 0:
		return nil, apierrors.NewInternalError(errors.New("not now"))
	case of.Metadata.UID != is.GetUID(), of.Metadata.ResourceVersion != "" && of.Metadata.ResourceVersion != is.GetResourceVersion():
		return nil, apierrors.NewConflict(corev1.Resource("x"), is.GetName(), errors.New("changed"))
	}
	then, err := strategicpatch.StrategicMergePatch(now, data, object)
	if err != nil {
		return nil, err
	}
	after := new(T)
	return after, json.Unmarshal(then, after)
}

func (w *world) patchClaim(action clienttesting.Action) (bool, runtime.Object, error) {
	after, err := patched(w, w.claim, action)
	if err != nil {
		return true, nil, err
	}
	if has(after).Cmp(*has(w.claim)) != 0 || wants(after).Cmp(*wants(w.claim)) != 0 {
		w.broken = "the controller wrote what the claim has, or wants"
	}
	if after.Status.AllocatedResources.Storage().Cmp(*has(after)) < 0 {
		w.broken = "it recorded a size below what the claim has"
	}
	return true, w.put(after), nil
}

func (w *world) patchVolume(action clienttesting.Action) (bool, runtime.Object, error) {
	after, err := patched(w, w.volume, action)
	if err != nil {
		return true, nil, err
	}
	if offers(after).Cmp(*has(w.claim)) < 0 {
		w.broken = "the volume offers less than the claim has"
	}
	return true, w.putVolume(after), nil
}

// step does what the runner does: hold the key back, or reconcile it. At times the
// process is killed, and another one begins.
func (w *world) step() string {
	if w.Rand.IntN(10) == 0 && w.Rand.IntN(3) == 0 {
		w.start()
		return "another process"
	}
	if len(w.rig.Behind(theKey)) > 0 {
		return ""
	}
	before := w.version
	err := w.rig.Reconcile(w.t.Context(), theKey).Err()
	switch {
	case err != nil:
		return "failed: " + err.Error()
	case w.version == before:
		return ""
	}
	return "wrote " + w.looks()
}

func (w *world) deliver() string {
	if len(w.updates) == 0 {
		return ""
	}
	w.updates[0]()
	w.updates = w.updates[1:]
	return "delivered"
}

func (w *world) user() string {
	if w.asked == 4 {
		return ""
	}
	w.asked++
	c := w.claim.DeepCopy()
	c.Spec.Resources.Requests = storage(fmt.Sprint(w.asked, "Gi"))
	w.put(c)
	return fmt.Sprintf("wants %d Gi", w.asked)
}

// node expands the file system when it is its turn, or gives up.
func (w *world) node() string {
	if stateOf(w.claim) != corev1.PersistentVolumeClaimNodeResizePending {
		return ""
	}
	c := w.claim.DeepCopy()
	if w.gaveUp < 3 && w.Rand.IntN(3) == 0 {
		w.gaveUp++
		setState(c, corev1.PersistentVolumeClaimNodeResizeInfeasible)
		w.put(c)
		return "gives up"
	}
	c = ended(c, *offers(w.volume))
	w.put(c)
	return "expands to " + offers(w.volume).String()
}

func (w *world) looks() string {
	return fmt.Sprintf("claim %s of %s, allocated %s, %s; volume %s, %v", has(w.claim), wants(w.claim), w.claim.Status.AllocatedResources.Storage(),
		stateOf(w.claim), offers(w.volume), w.volume.Annotations)
}

func TestAnExpansionEndsWhateverComesBetween(t *testing.T) {
	for seed := range testworld.Seeds(t, 150) {
		w := newWorld(t, seed)
		if err := w.Run(2000); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if want := resource.MustParse("4Gi"); has(w.claim).Cmp(want) != 0 || offers(w.volume).Cmp(want) != 0 || annotated(w.volume) || stateOf(w.claim) != "" || len(w.claim.Status.Conditions) > 0 {
			t.Fatalf("seed %d: in the end %s\n%s", seed, w.looks(), w.Transcript())
		}
	}
}
