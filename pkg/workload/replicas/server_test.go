package replicas

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	podrules "github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// event is what a watch tells of an object at a version.
type event struct {
	object Object
	gone   bool
}

// server is an API server with one ReplicaSet, whose answers get lost and whose
// watches lag.
type server struct {
	mu            sync.Mutex
	rand          *rand.Rand
	version       int
	rs            *appsv1.ReplicaSet
	pods          map[string]*corev1.Pod
	podLog        []event
	setLog        []event
	faults        int // how many more calls may go wrong
	lifeLeft      int // how many more calls the controller makes before it crashes; -1 does not
	made, deleted int
	tooFar        bool // a deletion left fewer pods than wanted
}

var errCrashed = errors.New("the controller is no more")

func newServer(r *rand.Rand, replicas int) *server {
	s := &server{rand: r, pods: map[string]*corev1.Pod{}, lifeLeft: -1, faults: 8}
	s.rs = replicaSet(replicas)
	s.putSet(s.rs)
	return s
}

func (s *server) stamp(o metav1.Object) {
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
}

func (s *server) putSet(rs *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	s.stamp(rs)
	s.rs = rs
	s.setLog = append(s.setLog, event{object: rs})
	return rs
}

func (s *server) put(p *corev1.Pod) *corev1.Pod {
	p = p.DeepCopy()
	s.stamp(p)
	s.pods[p.Name] = p
	s.podLog = append(s.podLog, event{object: p})
	return p
}

func (s *server) remove(p *corev1.Pod) {
	p = p.DeepCopy()
	s.stamp(p)
	delete(s.pods, p.Name)
	s.podLog = append(s.podLog, event{p, true})
}

func (s *server) active() (n int) {
	for _, p := range s.pods {
		if podrules.Active(p) && metav1.IsControlledBy(p, s.rs) {
			n++
		}
	}
	return n
}

// unlucky reports whether this call goes wrong.
func (s *server) unlucky() bool {
	if s.faults == 0 || s.rand.IntN(4) > 0 {
		return false
	}
	s.faults--
	return true
}

// handle answers the controller's calls.
func (s *server) handle(action clienttesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lifeLeft == 0 {
		return true, nil, errCrashed
	}
	s.lifeLeft = max(s.lifeLeft-1, -1)
	if action.GetResource().Resource == "replicasets" {
		return s.handleSet(action)
	}
	switch a := action.(type) {
	case clienttesting.CreateAction:
		return s.create(a.GetObject().(*corev1.Pod))
	case clienttesting.DeleteActionImpl:
		return s.delete(a)
	case clienttesting.PatchAction:
		return s.patch(a)
	case clienttesting.ListAction:
		list := &corev1.PodList{}
		for _, p := range s.pods {
			list.Items = append(list.Items, *p)
		}
		return true, list, nil
	}
	return true, nil, fmt.Errorf("unexpected %s", action.GetVerb())
}

func (s *server) handleSet(action clienttesting.Action) (bool, runtime.Object, error) {
	update, ok := action.(clienttesting.UpdateAction)
	if !ok {
		return true, s.rs, nil
	}
	rs := update.GetObject().(*appsv1.ReplicaSet)
	if rs.ResourceVersion != s.rs.ResourceVersion {
		return true, nil, apierrors.NewConflict(appsv1.Resource("replicasets"), rs.Name, nil)
	}
	changed := s.rs.DeepCopy()
	changed.Status = rs.Status
	return true, s.putSet(changed), nil
}

func (s *server) create(p *corev1.Pod) (bool, runtime.Object, error) {
	lost := s.unlucky()
	if lost && s.rand.IntN(2) == 0 {
		return true, nil, apierrors.NewTimeoutError("not made", 1)
	}
	s.made++
	p = p.DeepCopy()
	p.Name = fmt.Sprintf("%s%d", p.GenerateName, s.made)
	p.UID = types.UID(p.Name)
	p.CreationTimestamp = ago(0)
	p = s.put(p)
	if lost {
		return true, nil, apierrors.NewTimeoutError("made, but the answer is lost", 1)
	}
	return true, p, nil
}

func (s *server) delete(a clienttesting.DeleteActionImpl) (bool, runtime.Object, error) {
	p, ok := s.pods[a.GetName()]
	switch {
	case !ok:
		return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), a.GetName())
	case *a.DeleteOptions.Preconditions.UID != p.UID:
		return true, nil, apierrors.NewConflict(corev1.Resource("pods"), p.Name, nil)
	case s.unlucky():
		return true, nil, apierrors.NewInternalError(errors.New("not deleted"))
	case p.DeletionTimestamp == nil:
		p = p.DeepCopy()
		p.DeletionTimestamp = ptr.To(ago(0))
		s.put(p)
		s.deleted++
		s.tooFar = s.tooFar || s.active() < int(*s.rs.Spec.Replicas)
	}
	return true, nil, nil
}

func (s *server) patch(a clienttesting.PatchAction) (bool, runtime.Object, error) {
	p, ok := s.pods[a.GetName()]
	if !ok {
		return true, nil, apierrors.NewNotFound(corev1.Resource("pods"), a.GetName())
	}
	p = p.DeepCopy()
	if metav1.IsControlledBy(p, s.rs) {
		p.OwnerReferences = nil
	} else {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.rs, testKind{}.Type())}
	}
	return true, s.put(p), nil
}
