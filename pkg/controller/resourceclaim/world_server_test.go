package resourceclaim

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

var errCut = errors.New("the connection was reset")

// stored is what an API server has of a kind, and what watches show of it.
type stored[T any, P interface {
	*T
	metav1.Object
}] struct {
	now map[string]P
	log []logged[T]
}

// logged is one state of an object; nil: it is gone.
type logged[T any] struct {
	name    string
	version int
	state   *T
}

func (s *stored[T, P]) put(version int, o P) {
	o.SetResourceVersion(strconv.Itoa(version))
	s.now[o.GetName()] = o
	s.log = append(s.log, logged[T]{o.GetName(), version, o})
}

func (s *stored[T, P]) drop(version int, name string) {
	delete(s.now, name)
	s.log = append(s.log, logged[T]{name, version, nil})
}

// server is the API server as the manager meets it.
type server struct{ *world }

func (s server) Invokes(a ktesting.Action, _ runtime.Object) (runtime.Object, error) {
	w := s.world
	if get, is := a.(ktesting.GetAction); is && a.GetVerb() == "get" {
		return w.get(get)
	}
	if w.lives == 0 {
		return nil, errCut
	}
	if w.lives > 0 {
		if w.lives--; w.lives == 0 && w.Rand.IntN(2) == 0 {
			return nil, errCut // killed before the write, or after it
		}
	}
	if w.faults > 0 && w.Rand.IntN(12) == 0 {
		w.faults--
		return nil, apierrors.NewForbidden(a.GetResource().GroupResource(), "", errors.New("not now"))
	}
	object, err := w.write(a)
	if err == nil && (w.lives == 0 || w.faults > 0 && w.Rand.IntN(12) == 0) {
		w.faults--
		return nil, errCut
	}
	return object, err
}

func (w *world) get(a ktesting.GetAction) (runtime.Object, error) {
	if w.faults > 0 && w.Rand.IntN(12) == 0 {
		w.faults--
		return nil, apierrors.NewInternalError(errCut)
	}
	if p := w.pods.now[a.GetName()]; p != nil && a.GetResource().Resource == "pods" {
		return p.DeepCopy(), nil
	}
	if c := w.claims.now[a.GetName()]; c != nil && a.GetResource().Resource == "resourceclaims" {
		return c.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(a.GetResource().GroupResource(), a.GetName())
}

func (w *world) write(a ktesting.Action) (runtime.Object, error) {
	switch a := a.(type) {
	case ktesting.DeleteActionImpl:
		return nil, w.deleteAsked(a)
	case ktesting.CreateActionImpl:
		return w.create(a.GetObject().(*resourceapi.ResourceClaim).DeepCopy()), nil
	case ktesting.UpdateActionImpl:
		return w.update(a.GetObject().(*resourceapi.ResourceClaim), a.GetSubresource() == "status")
	case ktesting.PatchActionImpl:
		return w.record(a.GetName(), a.GetPatch())
	}
	w.broken = "nobody asked for " + a.GetVerb()
	return nil, errCut
}

func (w *world) create(c *resourceapi.ResourceClaim) runtime.Object {
	w.version++
	c.Name, c.UID = fmt.Sprint(c.GenerateName, w.version), types.UID(fmt.Sprint("claim-", w.version))
	w.claims.put(w.version, c)
	for _, other := range w.claims.now {
		if other != c && other.Annotations[podClaimName] == c.Annotations[podClaimName] && other.OwnerReferences != nil && other.OwnerReferences[0].UID == c.OwnerReferences[0].UID {
			w.broken = fmt.Sprintf("%s and %s are for the same", other.Name, c.Name)
		}
	}
	return c.DeepCopy()
}

func (w *world) update(sent *resourceapi.ResourceClaim, status bool) (runtime.Object, error) {
	live := w.claims.now[sent.Name]
	switch {
	case live == nil:
		return nil, apierrors.NewNotFound(resourceapi.Resource("resourceclaims"), sent.Name)
	case live.ResourceVersion != sent.ResourceVersion || live.UID != sent.UID:
		return nil, apierrors.NewConflict(resourceapi.Resource("resourceclaims"), sent.Name, errors.New("changed"))
	}
	changed := live.DeepCopy()
	if status {
		changed.Status = *sent.Status.DeepCopy()
		w.judge(live, changed)
	} else {
		changed.Finalizers = slices.Clone(sent.Finalizers)
		if len(changed.Finalizers) == 0 && live.Status.Allocation != nil {
			w.broken = sent.Name + " is set free while it is allocated"
		}
	}
	w.putClaim(changed)
	return changed.DeepCopy(), nil
}

// judge holds what a status may lose: only pods that are over, and the allocation with the last.
func (w *world) judge(before, after *resourceapi.ResourceClaim) {
	for _, ref := range before.Status.ReservedFor {
		if slices.Contains(after.Status.ReservedFor, ref) {
			continue
		}
		if p := w.pods.now[ref.Name]; ref.Resource != "pods" || p != nil && p.UID == ref.UID && !done(p) {
			w.broken = fmt.Sprintf("%s loses the reservation of %s", before.Name, ref.Name)
		}
	}
	if before.Status.Allocation != nil && after.Status.Allocation == nil && len(after.Status.ReservedFor) > 0 {
		w.broken = before.Name + " loses its allocation while it is reserved"
	}
	if after.Status.Allocation != nil && before.Status.Allocation == nil {
		w.broken = before.Name + " is allocated by the controller"
	}
}

// putClaim stores a claim as the API server does: one that leaves goes without finalizers.
func (w *world) putClaim(c *resourceapi.ResourceClaim) {
	w.version++
	if c.DeletionTimestamp != nil && len(c.Finalizers) == 0 {
		w.claims.drop(w.version, c.Name)
		c.ResourceVersion = strconv.Itoa(w.version)
		return
	}
	w.claims.put(w.version, c)
}

func (w *world) deleteAsked(a ktesting.DeleteActionImpl) error {
	live := w.claims.now[a.GetName()]
	switch uid := ptr.Deref(a.DeleteOptions.Preconditions.UID, ""); {
	case live == nil:
		return apierrors.NewNotFound(resourceapi.Resource("resourceclaims"), a.GetName())
	case uid == "":
		w.broken = "a deletion without a UID"
	case live.UID != uid:
		return apierrors.NewConflict(resourceapi.Resource("resourceclaims"), a.GetName(), errors.New("another"))
	}
	if p := w.ownerOf(live); p != nil && !done(p) {
		w.broken = fmt.Sprintf("%s is deleted while its pod %s lives", live.Name, p.Name)
	}
	w.deleteClaim(live)
	return nil
}

func (w *world) deleteClaim(c *resourceapi.ResourceClaim) {
	if c.DeletionTimestamp == nil {
		w.putClaim(leaving(c.DeepCopy()))
	}
}

// ownerOf returns the pod that controls a claim, if it is there.
func (w *world) ownerOf(c *resourceapi.ResourceClaim) *corev1.Pod {
	ref := metav1.GetControllerOf(c)
	if ref == nil {
		return nil
	}
	if p := w.pods.now[ref.Name]; p != nil && p.UID == ref.UID {
		return p
	}
	return nil
}

// record applies a status: what its manager leaves out of it goes.
func (w *world) record(name string, patch []byte) (runtime.Object, error) {
	var sent corev1.Pod
	if err := json.Unmarshal(patch, &sent); err != nil {
		return nil, err
	}
	live := w.pods.now[name]
	switch {
	case live == nil:
		return nil, apierrors.NewNotFound(corev1.Resource("pods"), name)
	case sent.UID != live.UID:
		return nil, apierrors.NewConflict(corev1.Resource("pods"), name, errors.New("another"))
	}
	for _, old := range live.Status.ResourceClaimStatuses {
		c := w.claims.now[*old.ResourceClaimName]
		stays := slices.ContainsFunc(sent.Status.ResourceClaimStatuses, func(s corev1.PodResourceClaimStatus) bool {
			return s.Name == old.Name && ptr.Equal(s.ResourceClaimName, old.ResourceClaimName)
		})
		if c != nil && w.ownerOf(c) == live && !stays {
			w.broken = fmt.Sprintf("the status of %s loses %s", name, *old.ResourceClaimName)
		}
	}
	changed := live.DeepCopy()
	changed.Status.ResourceClaimStatuses = sent.Status.ResourceClaimStatuses
	w.version++
	w.pods.put(w.version, changed)
	return changed.DeepCopy(), nil
}
