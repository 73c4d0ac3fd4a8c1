package persistentvolumebinder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	volumehelpers "k8s.io/component-helpers/storage/volume"

	"github.com/kube-kcm/kube-controller-manager/pkg/volumes/recycle"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// pretendDisk says what is made and deleted on it, and fails if it is to.
type pretendDisk struct {
	did  []string
	fail error
}

func (d *pretendDisk) Provision(types.UID) (string, error) {
	d.did = append(d.did, "make")
	return "/tmp/hostpath_pv/u", d.fail
}

func (d *pretendDisk) Delete(path string) error {
	d.did = append(d.did, "delete "+path)
	return d.fail
}

// plant is the controller with built-in plugins on a fake API server that has these objects,
// whose caches show what was cached.
type plant struct {
	*fixture.Rig
	*Controller
	disk     *pretendDisk
	recycles error  // what recycling ends with
	during   func() // called while a volume is recycled or its backend deleted
	limits   *act.Limits
}

func newPlant(t *testing.T, live []runtime.Object, cached ...runtime.Object) *plant {
	t.Helper()
	r := &plant{Rig: fixture.New(fake.NewClientset(live...), noon), disk: &pretendDisk{}, limits: &act.Limits{}}
	core, hand := r.In.Core().V1(), r.Hand()
	hand.Limits = r.limits
	c, err := New(Caches{Volumes: core.PersistentVolumes(), Claims: core.PersistentVolumeClaims(), Pods: core.Pods(), Nodes: core.Nodes(),
		Classes: r.In.Storage().V1().StorageClasses()}, hand, Options{Workers: 1, Period: time.Second, Provisions: true, Plugins: BuiltIn(BuiltInOptions{
		Disk: r.disk, ProvisionsHostPaths: true, Clock: r.Clock,
		Recycle: func(_ context.Context, _ *recycle.Recycler, _ *corev1.PersistentVolume, say func(string, string)) error {
			r.disk.did = append(r.disk.did, "recycle")
			r.meanwhile()
			say("Warning", "Recycler pod: slow")
			return r.recycles
		},
	})})
	if err != nil {
		t.Fatal(err)
	}
	c.claims.LookLive(fixture.Live(r.Client))
	c.operations.LookLive(fixture.Live(r.Client))
	r.Controller = c
	r.Cache(t, cached...)
	return r
}

func (r *plant) meanwhile() {
	if r.during != nil {
		r.during()
	}
}

// runs carries out an operation, as the loop does that has begun it.
func (r *plant) runs(t *testing.T, op operation) error {
	t.Helper()
	if !r.ledger.begin(op, r.Clock.Now()) {
		t.Fatalf("%s does not begin", op)
	}
	return r.perform(t.Context(), op).Err()
}

// writes are the requests that write.
func (r *plant) writes() string {
	var all []string
	for _, a := range r.Client.Actions() {
		if a.GetVerb() != "get" && a.GetVerb() != "list" && a.GetVerb() != "watch" {
			all = append(all, strings.TrimSuffix(a.GetVerb()+" "+a.GetResource().Resource+"/"+a.GetSubresource(), "/"))
		}
	}
	return strings.Join(all, ", ")
}

func toReclaim(p corev1.PersistentVolumeReclaimPolicy, with ...onVolume) *corev1.PersistentVolume {
	return volume("pv", append([]onVolume{of("data", "uid-data"), in(corev1.VolumeReleased), policy(p), hostPath("/tmp/data")}, with...)...)
}

var deletion = operation{Kind: deletes, Volume: "pv", UID: "uid-pv"}

func TestAVolumeIsDeletedAfterItsBackend(t *testing.T) {
	pv := toReclaim(corev1.PersistentVolumeReclaimDelete, finalizers("x", deletionProtection))
	r := newPlant(t, []runtime.Object{pv}, pv)
	if err := r.runs(t, deletion); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(r.disk.did, ", "); got != "delete /tmp/data" {
		t.Errorf("did %s", got)
	}
	if got := r.writes(); got != "update persistentvolumes, delete persistentvolumes" {
		t.Errorf("wrote %s", got)
	}
	for _, a := range r.Client.Actions() {
		switch a := a.(type) {
		case clienttesting.UpdateAction:
			if got := a.GetObject().(*corev1.PersistentVolume).Finalizers; !slices.Equal(got, []string{"x"}) {
				t.Errorf("finalizers %v", got)
			}
		case clienttesting.DeleteActionImpl:
			if got := a.DeleteOptions.Preconditions; got == nil || *got.UID != "uid-pv" {
				t.Errorf("deleted any volume of the name: %v", got)
			}
		}
	}
}

// What the cache shows is old in each row: only what is so at this moment counts.
func TestNothingIsReclaimedThatIsNotToBe(t *testing.T) {
	const deletePolicy, recyclePolicy = corev1.PersistentVolumeReclaimDelete, corev1.PersistentVolumeReclaimRecycle
	away := func(r *plant, resource string) {
		r.Fail("get", resource, apierrors.NewInternalError(errors.New("away")))
	}
	other := toReclaim(deletePolicy)
	other.UID = "another"
	successor := claim("data", wantsVolume("other"))
	successor.UID = "successor"
	for name, tc := range map[string]struct {
		live    []runtime.Object
		prepare func(*plant)
	}{
		"it is to be retained now":                   {[]runtime.Object{toReclaim(corev1.PersistentVolumeReclaimRetain)}, nil},
		"it is left to a driver now":                 {[]runtime.Object{toReclaim(deletePolicy, noted(volumehelpers.AnnMigratedTo, "d")), toReclaim(recyclePolicy)}[:1], nil},
		"it is gone":                                 {nil, nil},
		"another one has its name":                   {[]runtime.Object{other}, nil},
		"it belongs to nobody now":                   {[]runtime.Object{toReclaim(deletePolicy, func(pv *corev1.PersistentVolume) { pv.Spec.ClaimRef = nil })}, nil},
		"it is kept for any claim of the name":       {[]runtime.Object{toReclaim(deletePolicy, of("data", ""))}, nil},
		"its claim is there":                         {[]runtime.Object{toReclaim(deletePolicy), claim("data", wantsVolume("pv"))}, nil},
		"its claim is there and names no volume yet": {[]runtime.Object{toReclaim(deletePolicy), claim("data")}, nil},
		"it is bound again":                          {[]runtime.Object{toReclaim(deletePolicy, in(corev1.VolumeBound)), claim("data", boundOnce("pv"))}, nil},
		"nobody can say whether it is there":         {[]runtime.Object{toReclaim(deletePolicy)}, func(r *plant) { away(r, "persistentvolumes") }},
		"nobody can say whether its claim is there":  {[]runtime.Object{toReclaim(deletePolicy)}, func(r *plant) { away(r, "persistentvolumeclaims") }},
		"a proxy says that its claim is gone": {[]runtime.Object{toReclaim(deletePolicy)}, func(r *plant) {
			r.Fail("get", "persistentvolumeclaims", foreign("persistentvolumeclaims"))
		}},
	} {
		for _, op := range []operation{deletion, {Kind: recycles, Volume: "pv", UID: "uid-pv"}} {
			t.Run(name+", "+string(op.Kind), func(t *testing.T) {
				for i, o := range tc.live {
					if pv, is := o.(*corev1.PersistentVolume); is && op.Kind == recycles && pv.Spec.PersistentVolumeReclaimPolicy == deletePolicy {
						pv = pv.DeepCopy()
						pv.Spec.PersistentVolumeReclaimPolicy = recyclePolicy
						tc.live = slices.Clone(tc.live)
						tc.live[i] = pv
					}
				}
				was := map[operationKind]corev1.PersistentVolumeReclaimPolicy{deletes: deletePolicy, recycles: recyclePolicy}[op.Kind]
				r := newPlant(t, tc.live, toReclaim(was))
				if tc.prepare != nil {
					tc.prepare(r)
				}
				if err := r.runs(t, op); err != nil {
					t.Errorf("says %v", err)
				}
				if got := r.writes(); got != "" || len(r.disk.did) > 0 {
					t.Errorf("did %v, wrote %s", r.disk.did, got)
				}
			})
		}
	}
	// The claim of that name is another one: what it left is reclaimed.
	r := newPlant(t, []runtime.Object{toReclaim(deletePolicy), successor}, toReclaim(deletePolicy))
	if err := r.runs(t, deletion); err != nil || len(r.disk.did) != 1 {
		t.Errorf("did %v, %v", r.disk.did, err)
	}
}

func TestADeletionThatFailsIsToldAndPauses(t *testing.T) {
	broken := errors.New("the disk is broken")
	for name, tc := range map[string]struct {
		prepare func(*plant)
		told    string
		writes  string
	}{
		"the backend is left":   {func(r *plant) { r.disk.fail = broken }, "the disk is broken", ""},
		"the finalizer is left": {func(r *plant) { r.Fail("update", "persistentvolumes", broken) }, "the disk is broken", "update persistentvolumes"},
		"the volume is left":    {func(r *plant) { r.Fail("delete", "persistentvolumes", broken) }, "", "update persistentvolumes, delete persistentvolumes"},
	} {
		t.Run(name, func(t *testing.T) {
			pv := toReclaim(corev1.PersistentVolumeReclaimDelete, finalizers(deletionProtection))
			r := newPlant(t, []runtime.Object{pv}, pv)
			tc.prepare(r)
			err := r.runs(t, deletion)
			failed, _ := r.ledger.of("uid-pv", "uid-data")
			if got := r.writes(); got != tc.writes {
				t.Errorf("wrote %s", got)
			}
			if tc.told == "" {
				if err != nil || failed != nil || !r.ledger.begin(deletion, noon) {
					t.Errorf("%v, told %v: it is done at the next look", err, failed)
				}
				return
			}
			if err == nil || failed == nil || failed.reason != "VolumeFailedDelete" || failed.message != tc.told {
				t.Errorf("%v, told %v", err, failed)
			}
			if r.ledger.begin(deletion, noon.Add(499*time.Millisecond)) || !r.ledger.begin(deletion, noon.Add(500*time.Millisecond)) {
				t.Error("it does not pause for half a second")
			}
		})
	}
}

// Its backend takes its time to delete, and meanwhile the volume is made again.
func TestAnotherVolumeOfItsNameKeepsItsFinalizer(t *testing.T) {
	pv := toReclaim(corev1.PersistentVolumeReclaimDelete, finalizers(deletionProtection))
	other := pv.DeepCopy()
	other.UID = "another"
	r := newPlant(t, []runtime.Object{pv}, pv)
	r.Client.PrependReactor("get", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return len(r.disk.did) > 0, other, nil
	})
	if err := r.runs(t, deletion); err != nil || strings.Contains(r.writes(), "update") {
		t.Errorf("wrote %s, %v", r.writes(), err)
	}
}

func TestAConflictOverTheFinalizerIsNoFailure(t *testing.T) {
	for conflicts, told := range map[int]bool{1: false, 4: false, 5: true} {
		pv := toReclaim(corev1.PersistentVolumeReclaimDelete, finalizers(deletionProtection))
		r := newPlant(t, []runtime.Object{pv}, pv)
		tries := 0
		r.Client.PrependReactor("update", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
			tries++
			return tries <= conflicts, nil, apierrors.NewConflict(corev1.Resource("persistentvolumes"), "pv", errors.New("changed"))
		})
		if err := r.runs(t, deletion); (err != nil) != told || len(r.disk.did) != 1 {
			t.Errorf("%d conflicts: did %v, %v", conflicts, r.disk.did, err)
		}
	}
}

// A process that is killed between any two writes is followed by one that deletes what is
// left, the directory once more.
func TestADeletionGoesOnWhereAnotherProcessStopped(t *testing.T) {
	for name, tc := range map[string]struct {
		marks  []string
		writes string
	}{
		"before the finalizer": {[]string{deletionProtection}, "update persistentvolumes, delete persistentvolumes"},
		"before the volume":    {nil, "delete persistentvolumes"},
	} {
		t.Run(name, func(t *testing.T) {
			pv := toReclaim(corev1.PersistentVolumeReclaimDelete, finalizers(tc.marks...))
			r := newPlant(t, []runtime.Object{pv}, pv)
			if err := r.runs(t, deletion); err != nil || len(r.disk.did) != 1 || r.writes() != tc.writes {
				t.Errorf("did %v, wrote %s, %v", r.disk.did, r.writes(), err)
			}
		})
	}
}

func TestRecyclingEmptiesAVolumeOrSaysWhyNot(t *testing.T) {
	op := operation{Kind: recycles, Volume: "pv", UID: "uid-pv"}
	for name, failure := range map[string]error{"emptied": nil, "failed": errors.New("failed to recycle volume: no")} {
		t.Run(name, func(t *testing.T) {
			pv := toReclaim(corev1.PersistentVolumeReclaimRecycle)
			r := newPlant(t, []runtime.Object{pv}, pv)
			r.recycles = failure
			err := r.runs(t, op)
			failed, emptied := r.ledger.of("uid-pv", "uid-data")
			if (err != nil) != (failure != nil) || emptied != (failure == nil) {
				t.Errorf("%v, emptied %v", err, emptied)
			}
			if failure != nil && (failed == nil || failed.reason != "VolumeFailedRecycle" || failed.message != "Recycle failed: failed to recycle volume: no") {
				t.Errorf("told %v", failed)
			}
			if _, other := r.ledger.of("uid-pv", "another"); other {
				t.Error("it counts as emptied after another claim")
			}
			if told := r.Told(); told != "Warning RecyclerPod Recycler pod: slow" {
				t.Errorf("told %s", told)
			}
			if !r.ledger.begin(op, noon) {
				t.Error("it pauses")
			}
		})
	}
}

// A look that is older than the end of the first recycling starts a second one, when the
// next claim may have the volume already.
func TestAVolumeIsRecycledOnceAfterAClaim(t *testing.T) {
	op := operation{Kind: recycles, Volume: "pv", UID: "uid-pv"}
	pv := toReclaim(corev1.PersistentVolumeReclaimRecycle)
	r := newPlant(t, []runtime.Object{pv}, pv)
	for range 2 {
		if err := r.runs(t, op); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Join(r.disk.did, ", "); got != "recycle" {
		t.Errorf("did %s", got)
	}
}

func TestToBeHeldBackIsNoFailureOfAnOperation(t *testing.T) {
	held := &consistency.Withheld{Why: "paused"}
	for _, op := range []operation{{Kind: recycles, Volume: "pv", UID: "uid-pv"}, deletion} {
		t.Run(string(op.Kind), func(t *testing.T) {
			pv := toReclaim(map[operationKind]corev1.PersistentVolumeReclaimPolicy{recycles: recyclePolicy, deletes: deletePolicy}[op.Kind])
			r := newPlant(t, []runtime.Object{pv}, pv)
			r.recycles, r.disk.fail = held, held
			if err := r.runs(t, op); consistency.WasWithheld(err) == nil {
				t.Errorf("ended with %v", err)
			}
			if failed, _ := r.ledger.of("uid-pv", "uid-data"); failed != nil {
				t.Errorf("told %v", failed)
			}
			if r.ledger.pauses(op, r.Clock.Now()) {
				t.Error("it pauses as after a failure")
			}
			r.during = func() {
				if r.ledger.begin(op, r.Clock.Now()) {
					t.Error("it begins a second time while it runs")
				}
			}
			if err := r.perform(t.Context(), op).Err(); consistency.WasWithheld(err) == nil { // it is let go, and held once more
				t.Errorf("ended with %v", err)
			}
		})
	}
}

// The data must not be gone before the brake lets its volume go.
func TestABackendWaitsForTheTurnOfItsVolume(t *testing.T) {
	pv := toReclaim(deletePolicy)
	pv.Finalizers = []string{deletionProtection}
	r := newPlant(t, []runtime.Object{pv}, pv)
	quiet := func(act.DeleteRate) {}
	r.limits.Brake = act.NewBrake(r.Clock, []act.DeleteRate{{PerMinute: 60}}, quiet, quiet)
	if err := r.runs(t, deletion); consistency.WasWithheld(err) == nil || len(r.disk.did) > 0 || r.writes() != "" {
		t.Fatalf("ended with %v, deleted %v, wrote %s", err, r.disk.did, r.writes())
	}
	if failed, _ := r.ledger.of("uid-pv", "uid-data"); failed != nil || r.ledger.pauses(deletion, r.Clock.Now()) {
		t.Errorf("told %v, and pauses as after a failure", failed)
	}
	r.Clock.Step(5 * time.Second)
	if err := r.perform(t.Context(), deletion).Err(); err != nil || len(r.disk.did) != 1 || r.writes() != "update persistentvolumes, delete persistentvolumes" {
		t.Errorf("when it is its turn: %v, deleted %v, wrote %s", err, r.disk.did, r.writes())
	}
}

func TestAnOperationRunsOnceAtATimeAndPausesEverLonger(t *testing.T) {
	l := newLedger()
	if !l.begin(deletion, noon) || l.begin(deletion, noon) {
		t.Error("it runs twice")
	}
	now, want := noon, []time.Duration{500 * time.Millisecond, time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 16 * time.Second, 32 * time.Second,
		64 * time.Second, 122 * time.Second, 122 * time.Second}
	for _, pause := range want {
		l.end(deletion, true, now)
		if l.begin(deletion, now.Add(pause-time.Millisecond)) {
			t.Fatalf("it begins before %s", pause)
		}
		if now = now.Add(pause); !l.begin(deletion, now) {
			t.Fatalf("it does not begin after %s", pause)
		}
	}
	l.end(deletion, false, now)
	if !l.begin(deletion, now) {
		t.Error("it pauses after a success")
	}
	l.end(deletion, true, now)
	l.forget(deletion.UID)
	if !l.begin(deletion, now) || len(l.paused) > 0 {
		t.Error("it remembers what is gone")
	}
}

// An operation may fail after its claim has gone, when nobody forgets it any more.
func TestAPauseThatIsLongOverIsForgotten(t *testing.T) {
	for over, kept := range map[time.Duration]bool{lastPause: true, lastPause + 1: false} {
		l := newLedger()
		l.end(deletion, true, noon)
		l.end(provisioning1, true, noon)
		now := noon.Add(firstPause + over)
		l.begin(provisioning1, now)
		l.end(operation{Kind: deletes, Volume: "other"}, true, now)
		if _, is := l.paused[deletion]; is != kept {
			t.Errorf("over for %s: kept %t", over, is)
		}
		if l.end(provisioning1, true, now); l.paused[provisioning1].last != 2*firstPause {
			t.Errorf("over for %s: what was running is not known to have failed before", over)
		}
	}
}

func TestRecyclingHoldsUpNothingElse(t *testing.T) {
	l := newLedger()
	recycling := func(n int) operation {
		return operation{Kind: recycles, Volume: fmt.Sprint("pv-", n), UID: types.UID(fmt.Sprint(n))}
	}
	for n := range mostRecycled {
		if !l.begin(recycling(n), noon) {
			t.Fatalf("volume %d is not recycled", n)
		}
	}
	if l.begin(recycling(mostRecycled), noon) || !l.begin(deletion, noon) {
		t.Error("all workers may recycle")
	}
	l.end(recycling(0), false, noon)
	if !l.begin(recycling(mostRecycled), noon) {
		t.Error("the next one does not have its turn")
	}
}

var provisioning1 = operation{Kind: provisions, Claim: types.NamespacedName{Namespace: "ns", Name: "data"}, UID: "uid-data"}

func hostClass(with ...func(*storagev1.StorageClass)) *storagev1.StorageClass {
	return class("host", "kubernetes.io/host-path", with...)
}

func TestAVolumeIsProvisioned(t *testing.T) {
	c := claim("data", wantsClass("host"))
	for policyOf, protected := range map[corev1.PersistentVolumeReclaimPolicy]bool{corev1.PersistentVolumeReclaimDelete: true, corev1.PersistentVolumeReclaimRetain: false} {
		r := newPlant(t, []runtime.Object{c}, c, hostClass(func(class *storagev1.StorageClass) { class.ReclaimPolicy = &policyOf }))
		if err := r.runs(t, provisioning1); err != nil {
			t.Fatal(err)
		}
		if got := r.writes(); got != "update persistentvolumeclaims, create persistentvolumes" {
			t.Errorf("wrote %s", got)
		}
		if told := r.Told(); told != "Normal ProvisioningSucceeded Successfully provisioned volume pvc-uid-data using kubernetes.io/host-path" {
			t.Errorf("told %s", told)
		}
		pv, err := r.Client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-uid-data", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		got := fmt.Sprint(pv.Spec.HostPath.Path, " ", pv.Spec.ClaimRef.UID, " ", pv.Spec.StorageClassName, " ", pv.Spec.PersistentVolumeReclaimPolicy, " ", pv.Spec.Capacity.Storage(),
			" ", pv.Spec.AccessModes, " ", pv.Annotations, " ", pv.Finalizers)
		want := fmt.Sprint("/tmp/hostpath_pv/u uid-data host ", policyOf, " 5Gi [ReadWriteOnce] map[kubernetes.io/createdby:hostpath-dynamic-provisioner "+
			"pv.kubernetes.io/bound-by-controller:yes pv.kubernetes.io/provisioned-by:kubernetes.io/host-path] ", map[bool]string{true: "[kubernetes.io/pv-controller]", false: "[]"}[protected])
		if got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

// What has begun the operation is old in each row.
func TestNothingIsProvisionedForAClaimThatNeedsNone(t *testing.T) {
	other := claim("data", wantsClass("host"))
	other.UID = "another"
	for name, cached := range map[string][]runtime.Object{
		"it is gone":               nil,
		"another one has its name": {other},
		"it has a volume":          {claim("data", wantsClass("host"), wantsVolume("v"))},
	} {
		t.Run(name, func(t *testing.T) {
			r := newPlant(t, cached, append(cached, hostClass())...)
			if err := r.runs(t, provisioning1); err != nil || r.Told() != "" || r.writes() != "" || len(r.disk.did) > 0 {
				t.Errorf("did %v, wrote %s, %v", r.disk.did, r.writes(), err)
			}
		})
	}
}

func TestWhatCannotBeProvisionedIsTold(t *testing.T) {
	node := says(volumehelpers.AnnSelectedNode, "n")
	annotated := []onClaim{says(volumehelpers.AnnStorageProvisioner, "kubernetes.io/host-path"), wantsClass("host")}
	const exists = "pvc-uid-data"
	for name, tc := range map[string]struct {
		claim   *corev1.PersistentVolumeClaim
		class   *storagev1.StorageClass
		live    []runtime.Object
		prepare func(*plant)
		told    string
		writes  string
		made    bool
	}{
		"one that has a source": {claim("data", append(annotated, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: "x"}
		})...),
			hostClass(), nil, nil, `Warning ProvisioningFailed plugin "kubernetes.io/host-path" is not a CSI plugin. Only CSI plugin can provision a claim with a datasource`, "", false},
		"one whose volume is there": {claim("data", annotated...), hostClass(), []runtime.Object{volume(exists)}, nil, "", "", false},
		"one of a class with mount options": {claim("data", annotated...), hostClass(func(c *storagev1.StorageClass) { c.MountOptions = []string{"a", "b"} }), nil, nil,
			`Warning ProvisioningFailed Mount options are not supported by the provisioner but StorageClass "host" has mount options [a b]`, "", false},
		"one of a provisioner that is off": {claim("data", annotated...), hostClass(), nil, func(r *plant) { r.plugins.(*builtIn).hostPath.Disabled = "off" },
			"Warning ProvisioningFailed Failed to create provisioner: off", "", false},
		"one on a node that is not there": {claim("data", append(annotated, node)...), hostClass(), nil, nil,
			`Warning ProvisioningFailed Failed to get target node: node "n" not found`, "", false},
		"one whose directory cannot be made": {claim("data", append(annotated, node)...), hostClass(), []runtime.Object{&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}},
			func(r *plant) { r.disk.fail = errors.New("no room") }, `Warning ProvisioningFailed Failed to provision volume with StorageClass "host": no room`, "update persistentvolumeclaims", true},
		"a block device": {claim("data", append(annotated, wantsBlock)...), hostClass(), nil, nil,
			`Warning ProvisioningFailed Failed to provision volume with StorageClass "host": kubernetes.io/host-path does not support block volume provisioning`, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			live := append([]runtime.Object{tc.claim}, tc.live...)
			r := newPlant(t, live, append(live, tc.class)...)
			if tc.prepare != nil {
				tc.prepare(r)
			}
			err := r.runs(t, provisioning1)
			if told := r.Told(); told != tc.told || (err != nil) != (tc.told != "") {
				t.Errorf("told %s, %v", told, err)
			}
			if got := r.writes(); got != tc.writes || (len(r.disk.did) > 0) != tc.made {
				t.Errorf("did %v, wrote %s", r.disk.did, got)
			}
			if tc.writes != "" {
				now, err := r.Client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "data", metav1.GetOptions{})
				if err != nil || hasNode(now) {
					t.Errorf("the node is still chosen: %v, %v", now.Annotations, err)
				}
			}
		})
	}
}

func TestNothingIsMadeWhenAProxySaysThatThereIsNoVolume(t *testing.T) {
	c := claim("data", wantsClass("host"))
	r := newPlant(t, []runtime.Object{c, volume("pvc-uid-data")}, c, hostClass())
	r.Fail("get", "persistentvolumes", foreign("persistentvolumes"))
	if err := r.runs(t, provisioning1); err == nil || len(r.disk.did) > 0 {
		t.Errorf("did %v, %v", r.disk.did, err)
	}
}

// creates runs a provisioning whose volume cannot be created n times, with the clock going
// on as long as it waits.
func creates(t *testing.T, r *plant) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- r.perform(t.Context(), provisioning1).Err() }()
	for {
		select {
		case err := <-ended:
			return err
		case <-time.After(time.Millisecond):
			if r.Clock.HasWaiters() {
				r.Clock.Step(pauseBetween)
			}
		}
	}
}

func TestAVolumeThatCannotBeCreatedLeavesNothingBehind(t *testing.T) {
	refused := errors.New("no")
	for name, tc := range map[string]struct {
		refusals int
		answer   func(r *plant) error // to the creations that are refused
		deletion error
		told     string
		did      string
	}{
		"the fifth try succeeds": {4, nil, nil, "Normal ProvisioningSucceeded Successfully provisioned volume pvc-uid-data using kubernetes.io/host-path", "make"},
		"no try succeeds": {5, nil, nil,
			"Warning ProvisioningFailed Error creating provisioned PV object for claim ns/data: no. Deleting the volume.", "make, delete /tmp/hostpath_pv/u"},
		"nor can it be deleted": {5, nil, errors.New("busy"),
			"Warning ProvisioningFailed Error creating provisioned PV object for claim ns/data: no. Deleting the volume.; " +
				"Warning ProvisioningCleanupFailed Error cleaning provisioned volume for claim ns/data: busy. Please delete manually.",
			"make" + strings.Repeat(", delete /tmp/hostpath_pv/u", 5)},
		"it is held back for longer than five tries": {8, func(*plant) error { return &consistency.Withheld{Why: "paused"} },
			nil, "Normal ProvisioningSucceeded Successfully provisioned volume pvc-uid-data using kubernetes.io/host-path", "make"},
		"it was created and the answer is lost": {1, func(r *plant) error {
			_ = r.Client.Tracker().Add(volume("pvc-uid-data", of("data", "uid-data")))
			return apierrors.NewInternalError(errors.New("lost"))
		}, nil, "Normal ProvisioningSucceeded Successfully provisioned volume pvc-uid-data using kubernetes.io/host-path", "make"},
	} {
		t.Run(name, func(t *testing.T) {
			c := claim("data", wantsClass("host"))
			r := newPlant(t, []runtime.Object{c}, c, hostClass())
			tries := 0
			r.Client.PrependReactor("create", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
				tries++
				switch {
				case tries > tc.refusals:
					return false, nil, nil
				case tc.answer != nil:
					return true, nil, tc.answer(r)
				}
				r.disk.fail = tc.deletion
				return true, nil, refused
			})
			r.ledger.begin(provisioning1, noon)
			err := creates(t, r)
			if told := r.Told(); told != tc.told || (err != nil) != strings.Contains(tc.told, "Warning") {
				t.Errorf("told %s, %v", told, err)
			}
			if got := strings.Join(r.disk.did, ", "); got != tc.did {
				t.Errorf("did %s", got)
			}
		})
	}
}

// The last answer to a creation may be lost, too: what is there is not deleted again, and
// a proxy does not know what is there.
func TestABackendWhoseVolumeIsThereStays(t *testing.T) {
	for name, answer := range map[string]error{"it is found": nil, "a proxy says that it is gone": foreign("persistentvolumes")} {
		t.Run(name, func(t *testing.T) {
			c := claim("data", wantsClass("host"))
			r := newPlant(t, []runtime.Object{c}, c, hostClass())
			tries := 0
			r.Client.PrependReactor("create", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
				if tries++; tries == 5 {
					_ = r.Client.Tracker().Add(volume("pvc-uid-data", of("data", "uid-data")))
				}
				return true, nil, apierrors.NewInternalError(errors.New("lost"))
			})
			r.Client.PrependReactor("get", "persistentvolumes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return answer != nil && tries > 0, nil, answer
			})
			r.ledger.begin(provisioning1, noon)
			if err := creates(t, r); err == nil || strings.Join(r.disk.did, ", ") != "make" {
				t.Errorf("did %v, %v", r.disk.did, err)
			}
		})
	}
}
