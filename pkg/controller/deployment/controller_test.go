package deployment

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var web = types.NamespacedName{Namespace: "ns", Name: "web"}

// rig is a controller whose caches are filled by hand and whose API server fails
// as told.
type rig struct {
	*Controller
	*fixture.Rig
}

func newRig(t testing.TB, cached ...runtime.Object) *rig {
	t.Helper()
	return rigWith(t, fake.NewClientset(cached...), cached...)
}

// rigWith has an API server that knows other objects than the caches.
func rigWith(t testing.TB, client *fake.Clientset, cached ...runtime.Object) *rig {
	t.Helper()
	r := fixture.New(client, noon)
	c, err := New(r.In.Apps().V1().Deployments(), r.In.Apps().V1().ReplicaSets(), r.In.Core().V1().Pods(), r.Hand(),
		Options{Workers: 1, TerminatingReplicas: true})
	if err != nil {
		t.Fatal(err)
	}
	c.Writes.LookLive(fixture.Live(client))
	r.Cache(t, cached...)
	client.ClearActions()
	return &rig{c, r}
}

// away has the live reads find nothing.
func (r *rig) away() { r.Writes.LookLive(fixture.Live(fake.NewClientset())) }

func (r *rig) stored(t *testing.T) *appsv1.Deployment {
	t.Helper()
	d, err := r.Client.AppsV1().Deployments("ns").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

var (
	setResource = appsv1.Resource("replicasets")
	denied      = apierrors.NewForbidden(setResource, "web", errors.New("exceeded quota"))
	conflict    = apierrors.NewConflict(appsv1.Resource("deployments"), "web", errors.New("changed"))
	gone        = apierrors.NewNotFound(setResource, "web-1")
	ending      = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Message: "ending",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}}}
)

func orphan(rs *appsv1.ReplicaSet) { rs.OwnerReferences = nil }

func TestRequests(t *testing.T) {
	for name, tc := range map[string]struct {
		objects []runtime.Object
		faults  func(*rig)
		did     string
		told    string
		err     bool
	}{
		"a settled one costs nothing": {
			objects: []runtime.Object{deploy(3, settled(3, reasonComplete)), set(1, "v1", 3, 3)}},
		"a rollout begins with one set and one status": {
			objects: []runtime.Object{deploy(0)},
			did:     "create replicasets, update deployments/status"},
		"a step is one patch for each set and one status": {
			objects: []runtime.Object{deploy(10, image("v2"), settled(10, reasonComplete)), set(1, "v1", 10, 10, sizedFor("10", "13"))},
			did:     "create replicasets, patch replicasets, update deployments/status",
			told:    "Normal ScalingReplicaSet Scaled up replica set web-HASH from 0 to 3; Normal ScalingReplicaSet Scaled down replica set web-1 from 10 to 8"},
		"a status that changed in between is tried again": {
			objects: []runtime.Object{deploy(3), set(1, "v1", 3, 3)},
			faults:  func(r *rig) { r.Fail("update", "deployments", conflict) },
			did:     "update deployments/status", err: true},
		"a Deployment that is gone needs no status": {
			objects: []runtime.Object{deploy(3), set(1, "v1", 3, 3)},
			faults:  func(r *rig) { r.Fail("update", "deployments", gone); r.away() },
			did:     "update deployments/status"},
		"a status that somebody answers for the API server is tried again": {
			objects: []runtime.Object{deploy(3), set(1, "v1", 3, 3)},
			faults:  func(r *rig) { r.Fail("update", "deployments", gone) },
			did:     "update deployments/status", err: true},
		"a set that changed in between ends the sync": {
			objects: []runtime.Object{deploy(5), set(1, "v1", 3, 3)},
			faults:  func(r *rig) { r.Fail("patch", "replicasets", conflict) },
			did:     "patch replicasets", err: true},
		"a set that is gone ends the sync too, as others were to shrink for it": {
			objects: []runtime.Object{deploy(10, image("v2"), func(d *appsv1.Deployment) { d.Spec.MinReadySeconds = 5 }),
				set(1, "v1", 10, 10, sizedFor("10", "13")), set(2, "v2", 3, 3, sizedFor("10", "13"))},
			faults: func(r *rig) { r.Fail("patch", "replicasets", gone); r.away() },
			did:    "patch replicasets", err: true},
		"an old set that keeps its pods holds up no status of a rollout": {
			objects: []runtime.Object{deploy(10, image("v2"), settled(10, reasonComplete)), set(1, "v1", 10, 10, sizedFor("10", "13")), set(2, "v2", 3, 3, sizedFor("10", "13"))},
			faults:  func(r *rig) { r.Fail("patch", "replicasets", denied) },
			did:     "patch replicasets, update deployments/status", err: true},
		"an old set that has changed in between is tried again first": {
			objects: []runtime.Object{deploy(10, image("v2"), settled(10, reasonComplete)), set(1, "v1", 10, 10, sizedFor("10", "13")), set(2, "v2", 3, 3, sizedFor("10", "13"))},
			faults:  func(r *rig) { r.Fail("patch", "replicasets", conflict) },
			did:     "patch replicasets", err: true},
		"a set that is lost is asked for again, and told": {
			objects: []runtime.Object{deploy(3)},
			faults:  func(r *rig) { r.Fail("create", "replicasets", apierrors.NewTimeoutError("no answer", 0)) },
			did:     "create replicasets, update deployments/status", err: true,
			told: `Warning ReplicaSetCreateError Failed to create new replica set "web-HASH": Timeout: no answer`},
		"a name that nobody can look at is tried again": {
			objects: []runtime.Object{deploy(3)},
			faults: func(r *rig) {
				r.Fail("create", "replicasets", apierrors.NewAlreadyExists(setResource, "web"))
				r.Fail("get", "replicasets", denied)
			},
			did: "create replicasets, get replicasets", err: true},
		"a set that may not be made is told": {
			objects: []runtime.Object{deploy(3)},
			faults:  func(r *rig) { r.Fail("create", "replicasets", denied) },
			did:     "create replicasets, update deployments/status", err: true,
			told: `Warning ReplicaSetCreateError Failed to create new replica set "web-HASH": replicasets.apps "web" is forbidden: exceeded quota`},
		"nothing is told in a namespace that ends": {
			objects: []runtime.Object{deploy(3)},
			faults:  func(r *rig) { r.Fail("create", "replicasets", ending) },
			did:     "create replicasets", err: true},
		"an orphan is adopted after a live look": {
			objects: []runtime.Object{deploy(3, settled(3, reasonComplete)), set(1, "v1", 3, 3, orphan)},
			did:     "get deployments, patch replicasets"},
		"an orphan that is gone is nobody's": {
			objects: []runtime.Object{deploy(0), set(1, "v1", 3, 3, orphan)},
			faults:  func(r *rig) { r.Fail("patch", "replicasets", gone); r.away() },
			did:     "get deployments, patch replicasets, create replicasets, update deployments/status"},
		"an orphan that only seems to be gone is tried again": {
			objects: []runtime.Object{deploy(0), set(1, "v1", 3, 3, orphan)},
			faults:  func(r *rig) { r.Fail("patch", "replicasets", gone) },
			did:     "get deployments, patch replicasets", err: true},
		"an owner that was replaced adopts nothing": {
			objects: []runtime.Object{deploy(3), set(1, "v1", 3, 3, orphan)},
			faults: func(r *rig) {
				r.Client.PrependReactor("get", "deployments", func(ktesting.Action) (bool, runtime.Object, error) {
					return true, deploy(3, func(d *appsv1.Deployment) { d.UID = "another" }), nil
				})
			},
			did: "get deployments", err: true},
		"one set is adopted while another is released": {
			objects: []runtime.Object{deploy(3, settled(3, reasonComplete)), set(1, "v1", 3, 3, orphan), set(2, "v2", 0, 0, func(rs *appsv1.ReplicaSet) { rs.Labels = map[string]string{"app": "x"} })},
			did:     "get deployments, 2 patch replicasets"},
		"a set that no longer matches is released": {
			objects: []runtime.Object{deploy(0), set(1, "v1", 3, 3, func(rs *appsv1.ReplicaSet) { rs.Labels = map[string]string{"app": "x"} })},
			did:     "patch replicasets, create replicasets, update deployments/status"},
		"one being deleted adopts nothing": {
			objects: []runtime.Object{deploy(3, leavingDeployment, settled(0, reasonComplete)), set(1, "v1", 3, 3, orphan)},
			did:     "update deployments/status"},
		"an annotation that does not stick keeps no history": {
			objects: []runtime.Object{deploy(3, image("v2"), settled(3, reasonComplete), annotated("example.com/note", "n"), func(d *appsv1.Deployment) { *d.Spec.RevisionHistoryLimit = 0 }),
				set(1, "v1", 0, 0), set(2, "v2", 3, 3)},
			did: "patch replicasets, delete replicasets, update deployments/status"},
		"history that cannot be cleared does not hold up the status": {
			objects: []runtime.Object{deploy(3, image("v2"), settled(3, reasonComplete), func(d *appsv1.Deployment) { *d.Spec.RevisionHistoryLimit = 0 }),
				set(1, "v1", 0, 0), set(2, "v2", 3, 3)},
			faults: func(r *rig) { r.Fail("delete", "replicasets", denied) },
			did:    "delete replicasets, update deployments/status", err: true},
		"a set that cannot be deleted does not keep the others": {
			objects: []runtime.Object{deploy(3, image("v3"), settled(3, reasonComplete), func(d *appsv1.Deployment) { *d.Spec.RevisionHistoryLimit = 0 }),
				set(1, "v1", 0, 0), set(2, "v2", 0, 0), set(3, "v3", 3, 3)},
			faults: func(r *rig) { r.Fail("delete", "replicasets", denied) },
			did:    "2 delete replicasets, update deployments/status", err: true},
		"a refused deletion is no deletion": {
			objects: []runtime.Object{deploy(3, image("v2"), settled(3, reasonComplete), func(d *appsv1.Deployment) { *d.Spec.RevisionHistoryLimit = 0 }),
				set(1, "v1", 0, 0), set(2, "v2", 3, 3)},
			faults: func(r *rig) { r.Fail("delete", "replicasets", gone) },
			did:    "delete replicasets, update deployments/status", err: true},
		"a set that is gone needs no deleting": {
			objects: []runtime.Object{deploy(3, image("v2"), settled(3, reasonComplete), func(d *appsv1.Deployment) { *d.Spec.RevisionHistoryLimit = 0 }),
				set(1, "v1", 0, 0), set(2, "v2", 3, 3)},
			faults: func(r *rig) { r.Fail("delete", "replicasets", gone); r.away() },
			did:    "delete replicasets, update deployments/status"},
		"a rollback is one update": {
			objects: []runtime.Object{deploy(3, image("v2"), settled(3, reasonComplete), annotated(appsv1.DeprecatedRollbackTo, "1")), set(1, "v1", 0, 0), set(2, "v2", 3, 3)},
			did:     "update deployments", told: `Normal DeploymentRollback Rolled back deployment "web" to revision 1`},
		"a rollback that fails is not told": {
			objects: []runtime.Object{deploy(3, image("v2"), settled(3, reasonComplete), annotated(appsv1.DeprecatedRollbackTo, "1")), set(1, "v1", 0, 0), set(2, "v2", 3, 3)},
			faults:  func(r *rig) { r.Fail("update", "deployments", conflict) },
			did:     "update deployments", err: true},
		"no ReplicaSet is created that the selector does not match": {
			objects: []runtime.Object{deploy(3, func(d *appsv1.Deployment) {
				d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: appsv1.DefaultDeploymentUniqueLabelKey, Operator: metav1.LabelSelectorOpDoesNotExist}}
			})},
			did:  "update deployments/status",
			told: `Warning ReplicaSetCreateError Failed to create new replica set "web-HASH": the selector of the deployment does not match its label pod-template-hash`},
		"a rolling update keeps its old pods when the selector does not match the new ReplicaSet": {
			objects: []runtime.Object{deploy(3, image("v2"), settled(3, reasonComplete), selectsHash("1")), set(1, "v1", 3, 3)},
			did:     "update deployments/status",
			told:    `Warning ReplicaSetCreateError Failed to create new replica set "web-HASH": the selector of the deployment does not match its label pod-template-hash`},
		"Recreate keeps its old pods when the selector does not match the new ReplicaSet": {
			objects: []runtime.Object{deploy(3, image("v2"), settled(3, reasonComplete), selectsHash("1"), recreateStrategy), set(1, "v1", 3, 3)},
			did:     "update deployments/status",
			told:    `Warning ReplicaSetCreateError Failed to create new replica set "web-HASH": the selector of the deployment does not match its label pod-template-hash`},
		"a selector for everything is told and nothing else done": {
			objects: []runtime.Object{deploy(3, func(d *appsv1.Deployment) { d.Spec.Selector = &metav1.LabelSelector{} }), set(1, "v1", 3, 3, orphan)},
			did:     "update deployments/status",
			told:    "Warning SelectingAll This deployment is selecting all pods. A non-empty selector is required."},
		"a selector that cannot be read is given up": {
			objects: []runtime.Object{deploy(3, func(d *appsv1.Deployment) {
				d.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Maybe"}}}
			})}, err: true},
		"one that is gone costs nothing": {},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tc.objects...)
			if tc.faults != nil {
				tc.faults(r)
			}
			result := r.Reconcile(t.Context(), web)
			check(t, r.Requests(), tc.did)
			check(t, hashes(r.Told(), tc.objects), tc.told)
			if (result.Err() != nil) != tc.err {
				t.Errorf("error is %v", result.Err())
			}
		})
	}
}

// The template that is left has its revision, which the Deployment did not say yet.
func TestARollbackWritesDownTheRevisionItLeaves(t *testing.T) {
	r := newRig(t, deploy(3, image("v2"), settled(3, reasonComplete), annotated(appsv1.DeprecatedRollbackTo, "1")), set(1, "v1", 0, 0), set(2, "v2", 3, 3))
	check(t, r.Reconcile(t.Context(), web).Err(), nil)
	check(t, r.stored(t).Annotations, map[string]string{revisionAnnotation: "2"})
}

func TestAStatusHasTheNewSize(t *testing.T) {
	r := newRig(t, deploy(10, image("v2"), settled(10, reasonComplete)), set(1, "v1", 10, 10, sizedFor("10", "13")))
	check(t, r.Reconcile(t.Context(), web).Err(), nil)
	check(t, r.stored(t).Status.UnavailableReplicas, 3+8-10)
}

func selectsHash(hash string) deploymentOption {
	return func(d *appsv1.Deployment) {
		d.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: appsv1.DefaultDeploymentUniqueLabelKey, Operator: metav1.LabelSelectorOpIn, Values: []string{hash}}}
	}
}

func TestAStatusWithoutTheNewSetHasNoNewPods(t *testing.T) {
	r := newRig(t, deploy(3, image("v2"), settled(3, reasonComplete), selectsHash("1")), set(1, "v1", 3, 3))
	check(t, r.Reconcile(t.Context(), web).Err(), nil)
	status := r.stored(t).Status
	check(t, []int32{status.Replicas, status.UpdatedReplicas, status.AvailableReplicas}, []int32{3, 0, 3})
}

// An old ReplicaSet that keeps its size still wants its pods.
func TestAStatusHasTheSizeThatIsLeft(t *testing.T) {
	r := newRig(t, deploy(3, image("v3"), settled(3, reasonComplete)), set(1, "v1", 3, 3), set(2, "v2", 1, 0), set(3, "v3", 0, 0))
	r.Fail("patch", "replicasets", denied)
	check(t, r.Reconcile(t.Context(), web).Err() != nil, true)
	check(t, r.stored(t).Status.UnavailableReplicas, 1)
}

// Nothing can be made in a namespace that ends, however often it is tried; what
// another refusal is about may pass.
func TestADeploymentInANamespaceThatEndsIsGivenUp(t *testing.T) {
	for name, tc := range map[string]struct {
		refusal error
		givenUp bool
	}{
		"the namespace ends":     {ending, true},
		"a quota is used up":     {denied, false},
		"the answer was a fault": {apierrors.NewInternalError(errors.New("etcd")), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, deploy(3))
			r.Fail("create", "replicasets", tc.refusal)
			result := r.Reconcile(t.Context(), web)
			check(t, result.Err() != nil, true)
			check(t, reflect.DeepEqual(result, runner.Terminal(result.Err()).Because(result.Plan())), tc.givenUp)
		})
	}
}

// Of two changes of one set, the second is made on what the first has left.
func TestASetIsChangedTwice(t *testing.T) {
	r := newRig(t, deploy(3, image("v2"), posts("1", "0"), settled(4, reasonUpdated)), set(1, "v1", 4, 3), set(2, "v2", 1, 1))
	version := 7
	var asked []string
	r.Client.PrependReactor("patch", "replicasets", func(action ktesting.Action) (bool, runtime.Object, error) {
		patch := action.(ktesting.PatchAction)
		asked = append(asked, patch.GetName()+" "+string(patch.GetPatch()))
		version++
		return true, set(1, "v1", 4, 3, func(rs *appsv1.ReplicaSet) { rs.ResourceVersion = fmt.Sprint(version) }), nil
	})
	if err := r.Reconcile(t.Context(), web).Err(); err != nil {
		t.Fatal(err)
	}
	check(t, asked, []string{
		`web-1 {"metadata":{"resourceVersion":"1","uid":"web-1"},"spec":{"replicas":3}}`,
		`web-1 {"metadata":{"resourceVersion":"8","uid":"web-1"},"spec":{"replicas":2}}`,
	})
	check(t, r.Requests(), "2 patch replicasets, update deployments/status")
	check(t, r.Told(), "Normal ScalingReplicaSet Scaled down replica set web-1 from 4 to 3; Normal ScalingReplicaSet Scaled down replica set web-1 from 3 to 2")
}

func TestHistoryIsClearedWhenDeletionsAreLetThrough(t *testing.T) {
	r := newRig(t, deploy(3, image("v2"), settled(3, reasonComplete), annotated(revisionAnnotation, "2"), func(d *appsv1.Deployment) { *d.Spec.RevisionHistoryLimit = 0 }),
		set(1, "v1", 0, 0), set(2, "v2", 3, 3))
	refuses := true
	r.Client.PrependReactor("delete", "replicasets", func(ktesting.Action) (bool, runtime.Object, error) {
		return refuses, nil, apierrors.NewConflict(setResource, "web-1", errors.New("a webhook says no"))
	})
	for range 3 {
		check(t, apierrors.IsConflict(r.Reconcile(t.Context(), web).Err()), true)
		check(t, len(r.Writes.Behind(web)), 0)
	}
	refuses = false
	check(t, r.Reconcile(t.Context(), web).Err(), nil)
	check(t, r.Requests(), "4 delete replicasets")
	check(t, len(r.Writes.Behind(web)), 1)
	_, err := r.Client.AppsV1().ReplicaSets("ns").Get(t.Context(), "web-1", metav1.GetOptions{})
	check(t, apierrors.IsNotFound(err), true)
}

// hashes makes texts comparable whatever the hash of the template is.
func hashes(text string, objects []runtime.Object) string {
	for _, object := range objects {
		if d, ok := object.(*appsv1.Deployment); ok {
			text = strings.ReplaceAll(text, pods.TemplateHash(&d.Spec.Template, d.Status.CollisionCount), "HASH")
		}
	}
	return text
}

func TestATakenName(t *testing.T) {
	d := deploy(3)
	mine := newSetFor(d, nil)
	mine.UID, mine.ResourceVersion = "mine", "9"
	other := mine.DeepCopy()
	other.OwnerReferences = nil
	changed := mine.DeepCopy()
	changed.Spec.Template.Spec.Containers[0].Image = "v0"
	for name, tc := range map[string]struct {
		there *appsv1.ReplicaSet
		did   string
		err   bool
		count int32
	}{
		"by the very set, which the cache does not show": {mine, "create replicasets, get replicasets", true, 0},
		"by another's":                      {other, "create replicasets, get replicasets, update deployments/status", false, 1},
		"by one of its own that was edited": {changed, "create replicasets, get replicasets, update deployments/status", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, d)
			if err := r.Client.Tracker().Add(tc.there); err != nil {
				t.Fatal(err)
			}
			result := r.Reconcile(t.Context(), web)
			check(t, r.Requests(), tc.did)
			check(t, r.Told(), "")
			check(t, result.Err() != nil, tc.err)
			count := int32(0)
			if c := r.stored(t).Status.CollisionCount; c != nil {
				count = *c
			}
			check(t, count, tc.count)
		})
	}
}

func TestTheDeadlineIsLookedAtWhenItIsThere(t *testing.T) {
	d := deploy(3, settled(2, reasonUpdated))
	d.Status.Conditions[1].LastUpdateTime = metav1.NewTime(noon.Add(-10 * time.Minute).Add(90 * time.Second))
	r := newRig(t, d, set(1, "v1", 2, 2, sizedFor("3", "4"), func(rs *appsv1.ReplicaSet) { *rs.Spec.Replicas = 3 }))
	result := r.Reconcile(t.Context(), web)
	check(t, result.After(), 90*time.Second)
}

// woken collects the keys that a rule wakes.
type woken []string

func (w *woken) Add(key types.NamespacedName)                       { *w = append(*w, key.Name) }
func (w *woken) AddAfter(key types.NamespacedName, _ time.Duration) { w.Add(key) }

func TestWhatWakesADeployment(t *testing.T) {
	other := deploy(1, func(d *appsv1.Deployment) { d.Name, d.UID = "other", "o" })
	far := deploy(1, func(d *appsv1.Deployment) {
		d.Name, d.UID, d.Spec.Selector = "far", "f", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "far"}}
	})
	r := newRig(t, deploy(1), other, far)
	newer := func(rs *appsv1.ReplicaSet) { rs.ResourceVersion = "2" }
	others := func(rs *appsv1.ReplicaSet) { rs.OwnerReferences[0].Name, rs.OwnerReferences[0].UID = "other", "o" }
	former := func(rs *appsv1.ReplicaSet) { rs.OwnerReferences[0].UID = "before" }
	foreign := func(rs *appsv1.ReplicaSet) { rs.OwnerReferences[0].Kind = "Other" }
	relabelled := func(rs *appsv1.ReplicaSet) { rs.Labels = map[string]string{"app": "far"} }
	leaving := func(rs *appsv1.ReplicaSet) { at := metav1.NewTime(noon); rs.DeletionTimestamp = &at }
	for name, tc := range map[string]struct {
		change runner.Change[appsv1.ReplicaSet]
		want   string
	}{
		"its own set appears":                      {runner.Change[appsv1.ReplicaSet]{New: set(1, "v1", 1, 1)}, "[web]"},
		"its own set changes":                      {runner.Change[appsv1.ReplicaSet]{Old: set(1, "v1", 1, 1), New: set(1, "v1", 1, 1, newer)}, "[web]"},
		"its own set is gone":                      {runner.Change[appsv1.ReplicaSet]{Old: set(1, "v1", 1, 1)}, "[web]"},
		"a resync is nothing new":                  {runner.Change[appsv1.ReplicaSet]{Old: set(1, "v1", 1, 1), New: set(1, "v1", 1, 1)}, "[]"},
		"a set changes hands":                      {runner.Change[appsv1.ReplicaSet]{Old: set(1, "v1", 1, 1), New: set(1, "v1", 1, 1, newer, others)}, "[web other]"},
		"a set of a Deployment of the past":        {runner.Change[appsv1.ReplicaSet]{New: set(1, "v1", 1, 1, former)}, "[]"},
		"a set of something else":                  {runner.Change[appsv1.ReplicaSet]{New: set(1, "v1", 1, 1, foreign)}, "[]"},
		"an orphan wakes all that could adopt it":  {runner.Change[appsv1.ReplicaSet]{New: set(1, "v1", 1, 1, orphan)}, "[other web]"},
		"an orphan with new labels":                {runner.Change[appsv1.ReplicaSet]{Old: set(1, "v1", 1, 1, orphan), New: set(1, "v1", 1, 1, orphan, newer, relabelled)}, "[far]"},
		"an orphan's status is not of interest":    {runner.Change[appsv1.ReplicaSet]{Old: set(1, "v1", 1, 1, orphan), New: set(1, "v1", 1, 0, orphan, newer)}, "[]"},
		"an orphan on its way out":                 {runner.Change[appsv1.ReplicaSet]{New: set(1, "v1", 1, 1, orphan, leaving)}, "[]"},
		"a released set wakes those it might join": {runner.Change[appsv1.ReplicaSet]{Old: set(1, "v1", 1, 1), New: set(1, "v1", 1, 1, newer, orphan, relabelled)}, "[far web]"},
	} {
		t.Run(name, func(t *testing.T) {
			var w woken
			r.setChanged(tc.change, &w)
			check(t, fmt.Sprint(sorted(w)), fmt.Sprint(sorted(strings.Fields(strings.Trim(tc.want, "[]")))))
		})
	}
}

func TestOnlyRecreateWaitsForPods(t *testing.T) {
	pod := func(owner string) *corev1.Pod {
		yes := true
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", Labels: map[string]string{"app": "web"},
			OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-1", UID: types.UID(owner), Controller: &yes}}}}
	}
	for name, tc := range map[string]struct {
		d      *appsv1.Deployment
		change runner.Change[corev1.Pod]
		want   int
	}{
		"a pod of Recreate is gone":        {deploy(1, recreateStrategy), runner.Change[corev1.Pod]{Old: pod("web-1")}, 1},
		"a pod of Recreate changes":        {deploy(1, recreateStrategy), runner.Change[corev1.Pod]{Old: pod("web-1"), New: pod("web-1")}, 0},
		"a pod of a rolling update":        {deploy(1), runner.Change[corev1.Pod]{Old: pod("web-1")}, 0},
		"a pod of a set that was replaced": {deploy(1, recreateStrategy), runner.Change[corev1.Pod]{Old: pod("before")}, 0},
		"a pod of nobody":                  {deploy(1, recreateStrategy), runner.Change[corev1.Pod]{Old: &corev1.Pod{}}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			var w woken
			newRig(t, tc.d, set(1, "v1", 1, 1)).podChanged(tc.change, &w)
			check(t, len(w), tc.want)
		})
	}
}

func TestRecreateSeesThePodsOfOldSets(t *testing.T) {
	yes := true
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "ns", Labels: map[string]string{"app": "web"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-1", UID: "web-1", Controller: &yes}}}}
	d := deploy(1, image("v2"), recreateStrategy, settled(0, reasonUpdated))
	waiting := newRig(t, d, set(1, "v1", 0, 0), pod)
	waiting.Reconcile(t.Context(), web)
	check(t, waiting.Requests(), "update deployments/status")
	free := newRig(t, d, set(1, "v1", 0, 0))
	free.Reconcile(t.Context(), web)
	check(t, free.Requests(), "create replicasets, update deployments/status")
}

func TestADeploymentThatIsHeldForLongIsTold(t *testing.T) {
	r := newRig(t, deploy(1))
	fixture.HoldForLong(r.Writes, web, replicaSetResource, noon)
	fixture.Run(t, r.Client, r.Run, r.In)
	fixture.Eventually(t, "the event", func() bool { return strings.Contains(r.Told(), "Warning CacheBehind Not reconciled for 5m0s") })
}
