package statefulset

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/revisions"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var (
	_ runner.Loop = (*Controller)(nil)
	// web is the key of newSet.
	web = Key{Namespace: "ns", Name: "web"}
)

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
	apps, core := r.In.Apps().V1(), r.In.Core().V1()
	c, err := New(Caches{Sets: apps.StatefulSets(), Revisions: apps.ControllerRevisions(), Pods: core.Pods(), Claims: core.PersistentVolumeClaims()},
		r.Hand(), Options{Workers: 1, SemanticRevisions: true})
	if err != nil {
		t.Fatal(err)
	}
	c.LookLive(fixture.Live(client))
	r.Cache(t, cached...)
	client.ClearActions()
	return &rig{c, r}
}

// revisionFor is the revision of the template, as the controller makes it.
func revisionFor(t testing.TB, set *appsv1.StatefulSet, image string, number int64) *appsv1.ControllerRevision {
	t.Helper()
	with := set.DeepCopy()
	with.Spec.Template, with.Status = template(image), appsv1.StatefulSetStatus{}
	e, err := edit(with, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	r := e.create
	hash := revisions.Hash(r.Data.Raw, new(int32))
	r.Name, r.Revision, r.Labels[revisions.HashLabel] = revisions.Name(set.Name, hash), number, hash
	r.UID, r.ResourceVersion = "r-uid", "1"
	return r
}

// settled is a set with pods that are all as wanted, and its history.
func settled(t testing.TB, replicas int32, options ...setOption) []runtime.Object {
	t.Helper()
	set := newSet(replicas, options...)
	r := revisionFor(t, set, "v2", 1)
	set.Status = appsv1.StatefulSetStatus{ObservedGeneration: 1, Replicas: replicas, ReadyReplicas: replicas, AvailableReplicas: replicas,
		CurrentReplicas: replicas, UpdatedReplicas: replicas, CurrentRevision: r.Name, UpdateRevision: r.Name, CollisionCount: new(int32)}
	all := []runtime.Object{set, r}
	for i := range int(replicas) {
		pod := newTestPod(i, at(r.Name))
		if len(set.Spec.VolumeClaimTemplates) > 0 {
			mounts("data", "data-"+pod.Name)(pod)
			all = append(all, newTestClaim(i))
		}
		all = append(all, pod)
	}
	return all
}

var (
	denied   = apierrors.NewForbidden(corev1.Resource("pods"), "web-0", errors.New("exceeded quota"))
	conflict = apierrors.NewConflict(appsv1.Resource("statefulsets"), "web", errors.New("changed"))
	gone     = apierrors.NewNotFound(corev1.Resource("pods"), "web-0")
	exists   = apierrors.NewAlreadyExists(corev1.Resource("pods"), "web-0")
	nsEnds   = &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden, Message: "ending",
		Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}}}}
)

// growing is a set whose first pod has become ready, and that lacks its second.
func growing(objects []runtime.Object) []runtime.Object {
	set := objects[0].(*appsv1.StatefulSet)
	set.Spec.Replicas, set.Status.ReadyReplicas, set.Status.AvailableReplicas = new(int32), 0, 0
	*set.Spec.Replicas = 2
	return objects
}

func justReported(r *rig) { r.reports.Sent(web, r.Clock.Now().Add(-time.Second)) }

const begins = "create controllerrevisions, "

func TestRequests(t *testing.T) {
	stray := called("stray")
	for name, tc := range map[string]struct {
		objects   []runtime.Object
		faults    func(*rig)
		did, told string
		err       bool
	}{
		"a settled set costs nothing":        {objects: settled(t, 3)},
		"nor does one with claims":           {objects: settled(t, 3, withData)},
		"a new set gets its first pod":       {objects: []runtime.Object{newSet(2)}, did: begins + "create pods, update statefulsets/status", told: "Normal SuccessfulCreate Create Pod web-0 in StatefulSet web successful"},
		"claims come first":                  {objects: []runtime.Object{newSet(2, withData)}, did: begins + "create persistentvolumeclaims, create pods, update statefulsets/status", told: "Normal SuccessfulCreate Create Claim data-web-0 Pod web-0 in StatefulSet web success; Normal SuccessfulCreate Create Pod web-0 in StatefulSet web successful"},
		"a claim that is refused":            {objects: []runtime.Object{newSet(1, withData)}, faults: func(r *rig) { r.Fail("create", "persistentvolumeclaims", denied) }, did: begins + "create persistentvolumeclaims, update statefulsets/status", err: true, told: `Warning FailedCreate Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota; Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: failed to create PVC data-web-0: pods "web-0" is forbidden: exceeded quota`},
		"a claim that another made":          {objects: []runtime.Object{newSet(1, withData)}, faults: func(r *rig) { r.Fail("create", "persistentvolumeclaims", exists) }, did: begins + "create persistentvolumeclaims, update statefulsets/status", err: true, told: `Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: failed to create PVC data-web-0: pods "web-0" already exists`},
		"a pod that is refused":              {objects: []runtime.Object{newSet(1)}, faults: func(r *rig) { r.Fail("create", "pods", denied) }, did: begins + "create pods, update statefulsets/status", err: true, told: `Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota`},
		"its claims go with the set then":    {objects: []runtime.Object{newSet(1, withData, retaining(del, keeps)), newTestClaim(0)}, faults: func(r *rig) { r.Fail("create", "pods", denied) }, did: begins + "create pods, update persistentvolumeclaims, update statefulsets/status", err: true, told: `Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota`},
		"not if its name is taken":           {objects: []runtime.Object{newSet(1, withData, retaining(del, keeps)), newTestClaim(0)}, faults: func(r *rig) { r.Fail("create", "pods", exists) }, did: begins + "create pods, update statefulsets/status", err: true},
		"while it is, no report waits":       {objects: growing(settled(t, 1)), faults: func(r *rig) { r.Fail("create", "pods", denied); justReported(r) }, did: "create pods, update statefulsets/status", err: true, told: `Warning FailedCreate Create Pod web-1 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota`},
		"else it does":                       {objects: growing(settled(t, 1)), faults: justReported, did: "create pods", told: "Normal SuccessfulCreate Create Pod web-1 in StatefulSet web successful"},
		"a name that is taken":               {objects: []runtime.Object{newSet(1)}, faults: func(r *rig) { r.Fail("create", "pods", exists) }, did: begins + "create pods, update statefulsets/status", err: true},
		"a namespace that ends":              {objects: []runtime.Object{newSet(1)}, faults: func(r *rig) { r.Fail("create", "pods", nsEnds) }, did: begins + "create pods, update statefulsets/status"},
		"a claim in one":                     {objects: []runtime.Object{newSet(1, withData)}, faults: func(r *rig) { r.Fail("create", "persistentvolumeclaims", nsEnds) }, did: begins + "create persistentvolumeclaims, update statefulsets/status"},
		"a pod too many goes":                {objects: with(settled(t, 1), newTestPod(1)), did: "delete pods, update statefulsets/status", told: "Normal SuccessfulDelete Delete Pod web-1 in StatefulSet web successful"},
		"one that is gone is not told of":    {objects: with(settled(t, 1), newTestPod(1)), faults: func(r *rig) { r.Fail("delete", "pods", gone); nothingThere(r) }, did: "delete pods, update statefulsets/status"},
		"nor one that is another":            {objects: with(settled(t, 1), newTestPod(1)), faults: func(r *rig) { r.Fail("delete", "pods", conflict); nothingThere(r) }, did: "delete pods, update statefulsets/status"},
		"one that a webhook keeps":           {objects: with(settled(t, 1), newTestPod(1)), faults: func(r *rig) { r.Fail("delete", "pods", conflict) }, did: "delete pods, update statefulsets/status", err: true, told: `Warning FailedDelete Delete Pod web-1 in StatefulSet web failed error: Operation cannot be fulfilled on statefulsets.apps "web": changed`},
		"one that a proxy does not find":     {objects: with(settled(t, 1), newTestPod(1)), faults: func(r *rig) { r.Fail("delete", "pods", gone) }, did: "delete pods, update statefulsets/status", err: true, told: `Warning FailedDelete Delete Pod web-1 in StatefulSet web failed error: pods "web-0" not found`},
		"a deletion that is refused":         {objects: with(settled(t, 1), newTestPod(1)), faults: func(r *rig) { r.Fail("delete", "pods", denied) }, did: "delete pods, update statefulsets/status", err: true, told: `Warning FailedDelete Delete Pod web-1 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota`},
		"a pod without its name":             {objects: mending(settled(t, 1)), did: "patch pods", told: "Normal SuccessfulUpdate Update Pod web-0 in StatefulSet web successful"},
		"one without its claim":              {objects: unmounted(settled(t, 1, withData)), did: "patch pods", told: "Normal SuccessfulUpdate Update Pod web-0 in StatefulSet web successful"},
		"and with none to mount":             {objects: slices.DeleteFunc(unmounted(settled(t, 1, withData)), isClaim), did: "create persistentvolumeclaims, patch pods", told: "Normal SuccessfulCreate Create Claim data-web-0 Pod web-0 in StatefulSet web success; Normal SuccessfulUpdate Update Pod web-0 in StatefulSet web successful"},
		"that in a namespace that ends":      {objects: slices.DeleteFunc(unmounted(settled(t, 1, withData)), isClaim), faults: func(r *rig) { r.Fail("create", "persistentvolumeclaims", nsEnds) }, did: "create persistentvolumeclaims"},
		"a repair that is refused":           {objects: mending(settled(t, 1)), faults: func(r *rig) { r.Fail("patch", "pods", denied) }, did: "patch pods", err: true, told: `Warning FailedUpdate Update Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota`},
		"claims that go with the set":        {objects: settled(t, 2, withData, retaining(del, keeps)), did: "2 update persistentvolumeclaims", told: "Normal SuccessfulUpdate Update Pod web-0 in StatefulSet web successful; Normal SuccessfulUpdate Update Pod web-1 in StatefulSet web successful"},
		"one that cannot be handed over":     {objects: settled(t, 2, withData, retaining(del, keeps)), faults: func(r *rig) { r.Fail("update", "persistentvolumeclaims", conflict) }, did: "update persistentvolumeclaims", err: true, told: `Warning FailedUpdate Update Pod web-0 in StatefulSet web failed error: could not update claim data-web-0 for delete policy ownerRefs: Operation cannot be fulfilled on statefulsets.apps "web": changed`},
		"nor while its pod pends":            {objects: pends(settled(t, 1, withData, retaining(del, keeps))), faults: func(r *rig) { r.Fail("update", "persistentvolumeclaims", conflict) }, did: "update persistentvolumeclaims, update statefulsets/status", err: true, told: `Warning FailedUpdate Update Pod web-0 in StatefulSet web failed error: could not update claim data-web-0 for delete policy ownerRefs: Operation cannot be fulfilled on statefulsets.apps "web": changed`},
		"of one that goes that is not told":  {objects: away(pends(settled(t, 1, withData, retaining(keeps, del)))), faults: func(r *rig) { r.Fail("update", "persistentvolumeclaims", conflict) }, did: "update persistentvolumeclaims, update statefulsets/status", err: true},
		"a refused claim of one that pends":  {objects: slices.DeleteFunc(pends(settled(t, 1, withData)), isClaim), faults: func(r *rig) { r.Fail("create", "persistentvolumeclaims", denied) }, did: "create persistentvolumeclaims, update statefulsets/status", err: true, told: `Warning FailedCreate Create Claim data-web-0 for Pod web-0 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota`},
		"nor one that a proxy does not find": {objects: away(settled(t, 2, withData, retaining(keeps, del))), faults: func(r *rig) { r.Fail("update", "persistentvolumeclaims", gone) }, did: "update persistentvolumeclaims, update statefulsets/status", err: true},
		"one that is gone holds up nothing":  {objects: away(settled(t, 2, withData, retaining(keeps, del))), faults: func(r *rig) { r.Fail("update", "persistentvolumeclaims", gone); nothingThere(r) }, did: "update persistentvolumeclaims, delete pods, update statefulsets/status", told: "Normal SuccessfulDelete Delete Pod web-1 in StatefulSet web successful"},
		"a status that is not found":         {objects: with(settled(t, 0), newTestPod(9, ending)), faults: func(r *rig) { r.Fail("update", "statefulsets", gone) }, did: "update statefulsets/status", err: true},
		"of a set that is gone":              {objects: with(settled(t, 0), newTestPod(9, ending)), faults: func(r *rig) { r.Fail("update", "statefulsets", gone); nothingThere(r) }, did: "update statefulsets/status"},
		"the pod waits for its claim then":   {objects: away(settled(t, 2, withData, retaining(keeps, del))), faults: func(r *rig) { r.Fail("update", "persistentvolumeclaims", conflict) }, did: "update persistentvolumeclaims, update statefulsets/status", err: true},
		"a claim that another controls":      {objects: []runtime.Object{newSet(1, withData, retaining(del, keeps)), others(newTestClaim(0))}, did: begins + "create pods, update statefulsets/status", told: "Normal SuccessfulCreate Create Pod web-0 in StatefulSet web successful; Warning ConflictingController PersistentVolumeClaim data-web-0 has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim"},
		"and may keep":                       {objects: []runtime.Object{newSet(1, withData), others(newTestClaim(0))}, did: begins + "create pods, update statefulsets/status", told: "Normal SuccessfulCreate Create Pod web-0 in StatefulSet web successful"},
		"that of a pod that pends":           {objects: pends(disputed(settled(t, 1, withData, retaining(keeps, del)))), did: "update statefulsets/status", told: "Warning ConflictingController PersistentVolumeClaim data-web-0 has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim"},
		"of one that runs it is not told":    {objects: disputed(settled(t, 1, withData, retaining(keeps, del)))},
		"nor of one that goes":               {objects: away(disputed(settled(t, 1, withData, retaining(del, keeps)))), did: "delete pods, update statefulsets/status", told: "Normal SuccessfulDelete Delete Pod web-0 in StatefulSet web successful"},
		"and of one that pends then":         {objects: pends(beside(disputed(settled(t, 1, withData, retaining(del, keeps))))), did: "update persistentvolumeclaims, update statefulsets/status", told: "Warning ConflictingController PersistentVolumeClaim data-web-0 has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim"},
		"but beside another claim":           {objects: beside(disputed(settled(t, 1, withData, retaining(del, keeps)))), did: "update persistentvolumeclaims", told: "Warning ConflictingController PersistentVolumeClaim data-web-0 has a conflicting OwnerReference that acts as a manging controller, the retention policy is ignored for this claim; Normal SuccessfulUpdate Update Pod web-0 in StatefulSet web successful"},
		"an orphan is adopted":               {objects: orphaned(settled(t, 1)), did: "get statefulsets, patch pods"},
		"with its revision":                  {objects: unclaimed(orphaned(settled(t, 1))), did: "get statefulsets, patch controllerrevisions, patch pods"},
		"a pod that differs is let go":       {objects: relabelled(settled(t, 1)), did: "patch pods, create pods, update statefulsets/status", err: true},
		"so is one of a stranger's name":     {objects: with(settled(t, 1), stray), did: "patch pods"},
		"or without a number":                {objects: with(settled(t, 1), called("web-x")), did: "patch pods"},
		"or of a number alone":               {objects: with(settled(t, 1), called("12")), did: "patch pods"},
		"not one spelt with a zero":          {objects: with(settled(t, 1), called("web-01"))},
		"nor by a set that goes":             {objects: with(settled(t, 1, deleted), stray)},
		"a revision of other labels stays":   {objects: unlabelled(settled(t, 1)), did: "create controllerrevisions, get controllerrevisions"},
		"an orphaned revision is adopted":    {objects: unclaimed(settled(t, 1)), did: "get statefulsets, patch controllerrevisions"},
		"the status, on a conflict anew":     {objects: with(settled(t, 0), newTestPod(9, ending)), faults: conflictOnce, did: "update statefulsets/status, get statefulsets, update statefulsets/status"},
		"a set that goes, new":               {objects: []runtime.Object{newSet(1, deleted)}, did: begins + "update statefulsets/status"},
		"a set whose history went first":     {objects: []runtime.Object{newSet(1, deleted, observedOnce)}, did: "update statefulsets/status"},
		"and it was not seen since":          {objects: []runtime.Object{newSet(1, deleted, observedOnce, func(s *appsv1.StatefulSet) { s.Generation++ })}, did: "update statefulsets/status"},
		"or only the end of it was left":     {objects: []runtime.Object{newSet(1, deleted, observedOnce, func(s *appsv1.StatefulSet) { s.Generation++ }), revisionFor(t, newSet(1), "v1", 0)}, did: "update statefulsets/status"},
		"a set that goes, limited":           {objects: with(settled(t, 1, deleted, forgetful), revisionFor(t, newSet(1), "v1", 0)), did: "delete controllerrevisions"},
		"and although a pod is refused":      {objects: with(settled(t, 1, forgetful), newTestPod(1), revisionFor(t, newSet(1), "v1", 0)), faults: func(r *rig) { r.Fail("delete", "pods", denied) }, did: "delete pods, update statefulsets/status, delete controllerrevisions", err: true, told: `Warning FailedDelete Delete Pod web-1 in StatefulSet web failed error: pods "web-0" is forbidden: exceeded quota`},
		"but after a report that fails":      {objects: with(settled(t, 1, forgetful), newTestPod(1), revisionFor(t, newSet(1), "v1", 0)), faults: func(r *rig) { r.Fail("update", "statefulsets", denied) }, did: "delete pods, update statefulsets/status, delete controllerrevisions", err: true, told: "Normal SuccessfulDelete Delete Pod web-1 in StatefulSet web successful"},
		"or that waits":                      {objects: with(growing(settled(t, 1, forgetful)), revisionFor(t, newSet(1), "v1", 0)), faults: justReported, did: "create pods, delete controllerrevisions", told: "Normal SuccessfulCreate Create Pod web-1 in StatefulSet web successful"},
		"or in a namespace that ends":        {objects: with(growing(settled(t, 1, forgetful)), revisionFor(t, newSet(1), "v1", 0)), faults: func(r *rig) { r.Fail("create", "pods", nsEnds) }, did: "create pods, update statefulsets/status, delete controllerrevisions"},
		"a claim that goes":                  {objects: []runtime.Object{newSet(1, withData), going(newTestClaim(0))}, did: begins + "update statefulsets/status", err: true, told: "Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: pvc data-web-0 is being deleted"},
		"two that go":                        {objects: []runtime.Object{newSet(1, withData, withMore), going(newTestClaim(0)), going(moreClaim(0))}, did: begins + "update statefulsets/status", err: true, told: "Warning FailedCreate Create Pod web-0 in StatefulSet web failed error: [pvc data-web-0 is being deleted, pvc more-web-0 is being deleted]"},
		"a set without sense":                {objects: []runtime.Object{newSet(1, func(s *appsv1.StatefulSet) { s.Spec.Template.Labels = nil })}, err: true},
		"one that selects all":               {objects: []runtime.Object{newSet(1, func(s *appsv1.StatefulSet) { s.Spec.Selector = &metav1.LabelSelector{} })}, err: true},
		"one with a bad selector":            {objects: []runtime.Object{newSet(1, badSelector)}, err: true},
		"no set":                             {},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tc.objects...)
			if tc.faults != nil {
				tc.faults(r)
			}
			if err := r.Reconcile(t.Context(), web).Err(); (err != nil) != tc.err {
				t.Errorf("got %v", err)
			}
			same(t, r.Requests(), tc.did)
			same(t, r.Told(), tc.told)
		})
	}
}

// nothingThere is what a live look finds.
func nothingThere(r *rig) { r.LookLive(fixture.Live(fake.NewClientset())) }

// observedOnce is a set that was seen with a pod, and with the history it has no more.
func observedOnce(s *appsv1.StatefulSet) {
	s.Status = appsv1.StatefulSetStatus{ObservedGeneration: 1, Replicas: 1, CurrentRevision: "r", UpdateRevision: "r"}
}

func forgetful(s *appsv1.StatefulSet) { s.Spec.RevisionHistoryLimit = new(int32) }

func badSelector(s *appsv1.StatefulSet) {
	s.Spec.Selector.MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Near"}}
}

func with(objects []runtime.Object, more ...runtime.Object) []runtime.Object {
	return append(objects, more...)
}

func onFirstPod(objects []runtime.Object, do func(*corev1.Pod)) []runtime.Object {
	for _, o := range objects {
		if pod, ok := o.(*corev1.Pod); ok {
			do(pod)
			break
		}
	}
	return objects
}

func mending(objects []runtime.Object) []runtime.Object { return onFirstPod(objects, nameless) }
func unmounted(objects []runtime.Object) []runtime.Object {
	return onFirstPod(objects, func(p *corev1.Pod) { p.Spec.Volumes = nil })
}
func isClaim(o runtime.Object) bool { _, is := o.(*corev1.PersistentVolumeClaim); return is }
func orphaned(objects []runtime.Object) []runtime.Object {
	return onFirstPod(objects, func(p *corev1.Pod) { p.OwnerReferences = nil })
}
func relabelled(objects []runtime.Object) []runtime.Object {
	return onFirstPod(objects, func(p *corev1.Pod) { p.Labels["app"] = "debug" })
}

// called is a pod of this name that the set controls.
func called(name string) *corev1.Pod {
	return newTestPod(7, func(p *corev1.Pod) { p.Name = name })
}

func onRevisions(objects []runtime.Object, do func(*appsv1.ControllerRevision)) []runtime.Object {
	for _, o := range objects {
		if r, ok := o.(*appsv1.ControllerRevision); ok {
			do(r)
		}
	}
	return objects
}

func unlabelled(objects []runtime.Object) []runtime.Object {
	return onRevisions(objects, func(r *appsv1.ControllerRevision) { r.Labels = map[string]string{"app": "debug"} })
}
func unclaimed(objects []runtime.Object) []runtime.Object {
	return onRevisions(objects, func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil })
}

// others gives a claim to somebody else.
func others(claim *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
	claim.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other", Controller: ptr.To(true)}}
	return claim
}

func disputed(objects []runtime.Object) []runtime.Object {
	for _, o := range objects {
		if claim, ok := o.(*corev1.PersistentVolumeClaim); ok {
			others(claim)
		}
	}
	return objects
}

func pends(objects []runtime.Object) []runtime.Object {
	return onFirstPod(objects, func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })
}

// beside gives the first pod a second claim, which has no owner.
func beside(objects []runtime.Object) []runtime.Object {
	withMore(objects[0].(*appsv1.StatefulSet))
	more := moreClaim(0)
	return with(onFirstPod(objects, mounts("more", more.Name)), more)
}

// away scales the set to one below.
func away(objects []runtime.Object) []runtime.Object {
	set := objects[0].(*appsv1.StatefulSet)
	*set.Spec.Replicas--
	set.Generation++
	return objects
}

func conflictOnce(r *rig) {
	once := false
	r.Client.PrependReactor("update", "statefulsets", func(ktesting.Action) (bool, runtime.Object, error) {
		once = !once
		return once, nil, conflict
	})
}

// TestDeletesAreOfThePodThatWasLookedAt holds what keeps a stale cache from
// costing the next pod of the same name its life.
func TestDeletesAreOfThePodThatWasLookedAt(t *testing.T) {
	r := newRig(t, with(settled(t, 1), newTestPod(1))...)
	r.Reconcile(t.Context(), web)
	for _, a := range r.Client.Actions() {
		if d, ok := a.(ktesting.DeleteActionImpl); ok {
			if p := d.DeleteOptions.Preconditions; p == nil || p.UID == nil || *p.UID != "uweb-1" {
				t.Errorf("deletes with %+v", p)
			}
		}
	}
}

// TestARefusedDeletionIsNoDeletion holds that a conflict, which a webhook may
// answer, is tried again until it is granted.
func TestARefusedDeletionIsNoDeletion(t *testing.T) {
	r := newRig(t, with(settled(t, 1), newTestPod(1))...)
	refused := true
	r.Client.PrependReactor("delete", "pods", func(ktesting.Action) (bool, runtime.Object, error) { return refused, nil, conflict })
	for range 3 {
		if err := r.Reconcile(t.Context(), web).Err(); !apierrors.IsConflict(err) {
			t.Fatalf("got %v", err)
		}
		if fixture.Held(t.Context(), r.Writes, web) {
			t.Fatalf("waits for %v", r.Writes.Behind(web))
		}
	}
	refused = false
	r.Client.ClearActions()
	if err := r.Reconcile(t.Context(), web).Err(); err != nil || len(r.Writes.Behind(web)) == 0 {
		t.Errorf("got %v, waits for %v", err, r.Writes.Behind(web))
	}
	same(t, strings.Contains(r.Requests(), "delete pods"), true)
}

// TestHistory follows which revisions are written for a change of the template.
func TestHistory(t *testing.T) {
	set := newSet(0)
	first, second, third := revisionFor(t, set, "v1", 1), revisionFor(t, set, "v2", 2), revisionFor(t, set, "v3", 3)
	set.Status = appsv1.StatefulSetStatus{CurrentRevision: third.Name, UpdateRevision: third.Name, CollisionCount: new(int32)}
	limited, unlimited := set.DeepCopy(), set.DeepCopy()
	limited.Spec.RevisionHistoryLimit, unlimited.Spec.RevisionHistoryLimit = new(int32), ptr.To[int32](-1)
	spelt := second.DeepCopy()
	spelt.Name, spelt.Revision = "web-older", 4
	spelt.Data.Raw = []byte(strings.Replace(string(second.Data.Raw), `"$patch"`, `"metadata":{"creationTimestamp":null,"labels":{"app":"web"}},"$patch"`, 1))
	taken := second.DeepCopy()
	taken.OwnerReferences, taken.Labels, taken.Data.Raw = nil, nil, []byte(`{}`)
	for name, tc := range map[string]struct {
		set     *appsv1.StatefulSet
		history []*appsv1.ControllerRevision
		did     string
		update  string
		count   int32
	}{
		"a new template":              {set, list(first), "create controllerrevisions, update statefulsets/status", second.Name, 0},
		"the latest":                  {set, list(first, second), "update statefulsets/status", second.Name, 0},
		"an earlier one":              {set, list(first, second, third), "patch controllerrevisions, update statefulsets/status", second.Name, 0},
		"the latest, spelt otherwise": {set, list(first, spelt), "update statefulsets/status", "web-older", 0},
		"a name that is taken":        {set, list(taken), "create controllerrevisions, get controllerrevisions, create controllerrevisions, update statefulsets/status", "", 1},
		"beyond the limit":            {limited, list(first, second), "update statefulsets/status, delete controllerrevisions", second.Name, 0},
		"a limit that is none":        {unlimited, list(first, second), "update statefulsets/status", second.Name, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tc.set.DeepCopy())
			for i, h := range tc.history {
				h = h.DeepCopy()
				h.UID = types.UID(fmt.Sprint("history-", i))
				if err := r.Client.Tracker().Add(h); err != nil {
					t.Fatal(err)
				}
				r.Cache(t, h)
			}
			r.Client.ClearActions()
			if err := r.Reconcile(t.Context(), web).Err(); err != nil {
				t.Fatal(err)
			}
			same(t, r.Requests(), tc.did)
			got, err := r.Client.AppsV1().StatefulSets("ns").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil || tc.update != "" && got.Status.UpdateRevision != tc.update || *got.Status.CollisionCount != tc.count {
				t.Errorf("got %+v, %v", got.Status, err)
			}
		})
	}
}

// TestBelowThePartition holds that the current revision is read for the pods that are
// made from it, and for no others.
func TestBelowThePartition(t *testing.T) {
	for name, tc := range map[string]struct {
		pods       []int // those that are there
		unreadable bool
		image      string // of the pod that is made
		err        bool
	}{
		"a pod is made from it":       {[]int{1}, false, "v1", false},
		"one above it is not":         {[]int{0}, false, "v2", false},
		"one that cannot be read":     {[]int{1}, true, "", true},
		"is not read for those above": {[]int{0}, true, "v2", false},
		"nor when all are there":      {[]int{0, 1}, true, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			set := newSet(2, partitioned(1))
			current, update := revisionFor(t, set, "v1", 1), revisionFor(t, set, "v2", 2)
			set.Status = appsv1.StatefulSetStatus{ObservedGeneration: 1, CurrentRevision: current.Name, UpdateRevision: update.Name}
			if tc.unreadable {
				current.Data.Raw = []byte(`{"spec":1}`)
			}
			objects := []runtime.Object{set, current, update}
			for _, i := range tc.pods {
				objects = append(objects, newTestPod(i, at([]string{current.Name, update.Name}[i])))
			}
			r := newRig(t, objects...)
			if err := r.Reconcile(t.Context(), web).Err(); (err != nil) != tc.err {
				t.Errorf("got %v", err)
			}
			image := ""
			for _, a := range r.Client.Actions() {
				if a.Matches("create", "pods") {
					image = a.(ktesting.CreateAction).GetObject().(*corev1.Pod).Spec.Containers[0].Image
				}
			}
			same(t, image, tc.image)
		})
	}
}

// TestASwappedRevisionIsReadWithTheNextChange puts the contents of another revision
// under the name that the set is at.
func TestASwappedRevisionIsReadWithTheNextChange(t *testing.T) {
	for name, tc := range map[string]struct {
		generation int64
		did        string
	}{
		"the same generation": {1, ""},
		"the next one":        {2, "create controllerrevisions, get controllerrevisions, create controllerrevisions, update statefulsets/status"},
	} {
		t.Run(name, func(t *testing.T) {
			objects := settled(t, 0)
			set, swapped := objects[0].(*appsv1.StatefulSet), objects[1].(*appsv1.ControllerRevision)
			set.Generation = tc.generation
			swapped.Data = revisionFor(t, set, "v1", 1).Data
			r := newRig(t, objects...)
			if err := r.Reconcile(t.Context(), web).Err(); err != nil {
				t.Fatal(err)
			}
			same(t, r.Requests(), tc.did)
		})
	}
}

// TestConditionsOfOthersAreKept also puts one into the status just before it is written.
func TestConditionsOfOthersAreKept(t *testing.T) {
	before, meanwhile := appsv1.StatefulSetCondition{Type: "Before", Message: "as it was"}, appsv1.StatefulSetCondition{Type: "Meanwhile"}
	for name, tc := range map[string]struct {
		conflicts bool
		want      []appsv1.StatefulSetCondition
	}{
		"with the first try": {false, []appsv1.StatefulSetCondition{before}},
		"on a conflict":      {true, []appsv1.StatefulSetCondition{before, meanwhile}},
	} {
		t.Run(name, func(t *testing.T) {
			objects := with(settled(t, 0), newTestPod(9, ending))
			set := objects[0].(*appsv1.StatefulSet)
			set.Status.Conditions = []appsv1.StatefulSetCondition{before}
			r := newRig(t, objects...)
			if tc.conflicts {
				conflictOnce(r)
				later := set.DeepCopy()
				later.Status.Conditions = append(later.Status.Conditions, meanwhile)
				if err := r.Client.Tracker().Update(appsv1.SchemeGroupVersion.WithResource("statefulsets"), later, "ns"); err != nil {
					t.Fatal(err)
				}
			}
			if err := r.Reconcile(t.Context(), web).Err(); err != nil {
				t.Fatal(err)
			}
			got, err := r.Client.AppsV1().StatefulSets("ns").Get(t.Context(), "web", metav1.GetOptions{})
			if err != nil || got.Status.Replicas != 1 {
				t.Fatalf("got %+v, %v", got.Status, err)
			}
			same(t, got.Status.Conditions, tc.want)
		})
	}
}

func list(r ...*appsv1.ControllerRevision) []*appsv1.ControllerRevision { return r }

// TestTheRevisionIsTheOriginals holds the name that the original gave the
// revision of this template, as the API server defaults it.
func TestTheRevisionIsTheOriginals(t *testing.T) {
	set := newSet(1)
	grace := int64(0)
	set.Spec.Template.Spec = corev1.PodSpec{
		Containers: []corev1.Container{{Name: "c", Image: "example.com/web:1", ImagePullPolicy: corev1.PullIfNotPresent,
			TerminationMessagePath: "/dev/termination-log", TerminationMessagePolicy: corev1.TerminationMessageReadFile}},
		RestartPolicy: corev1.RestartPolicyAlways, DNSPolicy: corev1.DNSClusterFirst, SchedulerName: corev1.DefaultSchedulerName,
		SecurityContext: &corev1.PodSecurityContext{}, TerminationGracePeriodSeconds: &grace,
	}
	e, err := edit(set, nil, true)
	if err != nil {
		t.Fatal(err)
	}
	if got := revisions.Name("web", revisions.Hash(e.create.Data.Raw, new(int32))); got != "web-5bf9c5786d" {
		t.Errorf("got %s", got)
	}
}

// woken are the keys that a change wakes.
type woken []string

func TestWhatWakes(t *testing.T) {
	r := newRig(t, newSet(1), named("data-web"), named("b"))
	stranger := newTestPod(0, func(p *corev1.Pod) { p.OwnerReferences[0].Kind = "ReplicaSet" })
	orphan := newTestPod(0, func(p *corev1.Pod) { p.OwnerReferences = nil })
	changed := newTestPod(0, func(p *corev1.Pod) { p.ResourceVersion = "2" })
	for name, tc := range map[string]struct {
		before, after *corev1.Pod
		want          string
	}{
		"a new pod":           {nil, newTestPod(0), "web"},
		"a changed pod":       {newTestPod(0), changed, "web"},
		"a resync":            {newTestPod(0), newTestPod(0), ""},
		"a pod that is gone":  {newTestPod(0), nil, "web"},
		"another's":           {nil, stranger, ""},
		"an orphan":           {nil, orphan, "web"},
		"one that was let go": {changed, orphan, "web,web"},
		"an orphan that goes": {nil, newTestPod(0, ending, func(p *corev1.Pod) { p.OwnerReferences = nil }), ""},
		"one of no set":       {nil, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "other-0", Namespace: "ns"}}, ""},
	} {
		var keys woken
		r.podChanged(runner.Change[corev1.Pod]{Old: tc.before, New: tc.after}, &recorder{&keys})
		if got := strings.Join(keys, ","); got != tc.want {
			t.Errorf("%s wakes %q", name, got)
		}
	}
	for name, want := range map[string]string{"data-web-0": "web", "x-data-web-1": "data-web,web", "a-b-7": "b", "data-web": "", "other": ""} {
		var keys woken
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
		r.claimChanged(runner.Change[corev1.PersistentVolumeClaim]{New: claim}, &recorder{&keys})
		r.claimChanged(runner.Change[corev1.PersistentVolumeClaim]{Old: claim}, &recorder{&keys})
		slices.Sort(keys)
		if got := strings.Join(keys, ","); got != want {
			t.Errorf("the end of claim %s wakes %q", name, got)
		}
	}
	owned := newTestClaim(0, *metav1.NewControllerRef(newTestPod(0), podKind))
	for name, tc := range map[string]struct {
		before, after *corev1.PersistentVolumeClaim
		want          string
	}{
		"loses its owner": {owned, newTestClaim(0), "web"},
		"gets one":        {newTestClaim(0), owned, "web"},
		"keeps it":        {owned, owned.DeepCopy(), ""},
	} {
		var keys woken
		r.claimChanged(runner.Change[corev1.PersistentVolumeClaim]{Old: tc.before, New: tc.after}, &recorder{&keys})
		if got := strings.Join(keys, ","); got != tc.want {
			t.Errorf("a claim that %s wakes %q", name, got)
		}
	}
}

// The watch may tell the end of a set when the next one of its name has made pods.
func TestTheEndOfASetForgetsNoWritesOfTheNext(t *testing.T) {
	r := newRig(t)
	var keys woken
	r.Writes.Wrote(web, schema.GroupResource{Resource: "pods"}, newTestPod(0))
	r.setChanged(runner.Change[appsv1.StatefulSet]{Old: newSet(1)}, &recorder{&keys})
	if len(keys) != 1 || len(r.Writes.Behind(web)) != 1 {
		t.Errorf("the end of a set wakes %v and leaves %v", keys, r.Writes.Behind(web))
	}
	if err := r.Reconcile(t.Context(), web).Err(); err != nil || len(r.Writes.Behind(web)) > 0 {
		t.Errorf("got %v; that there is no next one leaves %v", err, r.Writes.Behind(web))
	}
}

// A pod that its quota or a webhook never lets in is one of many.
func TestAPlaceThatFailsHoldsUpNoneOfItsBatch(t *testing.T) {
	objects := growing(settled(t, 1, parallel))
	*objects[0].(*appsv1.StatefulSet).Spec.Replicas = 4
	r := newRig(t, objects...)
	r.Client.PrependReactor("create", "pods", func(a ktesting.Action) (bool, runtime.Object, error) {
		return a.(ktesting.CreateAction).GetObject().(*corev1.Pod).Name == "web-1", nil, denied
	})
	if err := r.Reconcile(t.Context(), web).Err(); err == nil {
		t.Error("nothing has failed")
	}
	if told := r.Told(); !strings.Contains(told, "Create Pod web-1 in StatefulSet web failed") || !strings.Contains(told, "Create Pod web-2 in StatefulSet web successful") {
		t.Errorf("told %s", told)
	}
	if did := r.Requests(); did != "2 create pods, update statefulsets/status" {
		t.Errorf("did %s", did)
	}
}

func named(name string) *appsv1.StatefulSet {
	return newSet(1, func(s *appsv1.StatefulSet) { s.Name, s.UID = name, "other" })
}

// BenchmarkOnePodChange shows that one change of a pod costs the same however
// many pods of others there are.
func BenchmarkOnePodChange(b *testing.B) {
	for _, size := range []int{1000, 10000} {
		b.Run(fmt.Sprintf("namespace=%d", size), func(b *testing.B) {
			all := settled(b, 10, withData)
			r := rigWith(b, fake.NewClientset(), all...)
			for i := range size {
				name := fmt.Sprintf("other-%d-%d", i%100, i)
				pod := newTestPod(0, func(p *corev1.Pod) {
					p.Name, p.UID = name, p.UID+"x"
					p.Labels["app"] = fmt.Sprint("other", i%100)
					if p.OwnerReferences[0].UID = "another"; i%10 == 0 {
						p.OwnerReferences = nil
					}
				})
				r.Cache(b, pod)
			}
			before := newTestPod(0)
			after := newTestPod(0, func(p *corev1.Pod) { p.ResourceVersion = "2" })
			b.ReportAllocs()
			for b.Loop() {
				var keys woken
				r.podChanged(runner.Change[corev1.Pod]{Old: before, New: after}, &recorder{&keys})
				if err := r.Reconcile(b.Context(), web).Err(); err != nil || len(keys) != 1 {
					b.Fatal(keys, err)
				}
			}
			if did := r.Requests(); did != "" {
				b.Fatal(did)
			}
		})
	}
}

// recorder writes down whom a rule wakes.
type recorder struct{ keys *woken }

func (r *recorder) Add(key Key)                       { *r.keys = append(*r.keys, key.Name) }
func (r *recorder) AddAfter(key Key, _ time.Duration) { r.Add(key) }
