package daemonset

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"
)

// object is any API object.
type object interface {
	metav1.Object
	runtime.Object
}

// event is what a watch tells of an object at a version.
type event struct {
	old, now object // now is nil when the object is gone
}

func (e event) is() object {
	if e.now != nil {
		return e.now
	}
	return e.old
}

// server is an API server with one DaemonSet, whose answers get lost.
type server struct {
	mu        sync.Mutex
	rand      *rand.Rand
	now       func() time.Time
	version   int
	ds        *appsv1.DaemonSet
	pods      map[string]*corev1.Pod
	nodes     map[string]*corev1.Node
	revisions map[string]*appsv1.ControllerRevision
	logs      map[string][]event
	faults    int // how many more calls may go wrong
	lifeLeft  int // how many more calls the controller makes before it crashes; -1 does not
	made      int
}

var errCrashed = errors.New("the controller is no more")

func newServer(r *rand.Rand, ds *appsv1.DaemonSet, nodes int) *server {
	s := &server{rand: r, pods: map[string]*corev1.Pod{}, nodes: map[string]*corev1.Node{}, revisions: map[string]*appsv1.ControllerRevision{},
		logs: map[string][]event{}, lifeLeft: -1, faults: 8}
	s.putSet(ds)
	for i := range nodes {
		s.putNode(node(fmt.Sprint("n", i)))
	}
	return s
}

func put[T object](s *server, kind string, in map[string]T, o T) T {
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
	e := event{now: o}
	if old, ok := in[o.GetName()]; ok {
		e.old = old
	}
	in[o.GetName()] = o
	s.logs[kind] = append(s.logs[kind], e)
	return o
}

func remove[T object](s *server, kind string, in map[string]T, name string) {
	o := in[name].DeepCopyObject().(T)
	s.version++
	o.SetResourceVersion(strconv.Itoa(s.version))
	delete(in, name)
	s.logs[kind] = append(s.logs[kind], event{old: o})
}

func (s *server) putPod(p *corev1.Pod) *corev1.Pod    { return put(s, "pods", s.pods, p.DeepCopy()) }
func (s *server) putNode(n *corev1.Node) *corev1.Node { return put(s, "nodes", s.nodes, n.DeepCopy()) }
func (s *server) putSet(ds *appsv1.DaemonSet) *appsv1.DaemonSet {
	in := map[string]*appsv1.DaemonSet{}
	if s.ds != nil {
		in["web"] = s.ds
	}
	s.ds = put(s, "daemonsets", in, ds.DeepCopy())
	return s.ds
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
func (s *server) handle(action ktesting.Action) (bool, runtime.Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lifeLeft == 0 {
		return true, nil, errCrashed
	}
	s.lifeLeft = max(s.lifeLeft-1, -1)
	var answer runtime.Object
	var err error
	switch action.GetResource().Resource {
	case "daemonsets":
		answer, err = s.handleSet(action)
	case "controllerrevisions":
		answer, err = s.handleRevision(action)
	default:
		answer, err = s.handlePod(action)
	}
	return true, answer, err
}

func (s *server) handleSet(action ktesting.Action) (runtime.Object, error) {
	update, ok := action.(ktesting.UpdateAction)
	if !ok {
		return s.ds, nil
	}
	ds := update.GetObject().(*appsv1.DaemonSet)
	if ds.ResourceVersion != s.ds.ResourceVersion {
		return nil, apierrors.NewConflict(appsv1.Resource("daemonsets"), ds.Name, nil)
	}
	changed := s.ds.DeepCopy()
	changed.Status = ds.Status
	return s.putSet(changed), nil
}

func (s *server) handleRevision(action ktesting.Action) (runtime.Object, error) {
	resource := appsv1.Resource("controllerrevisions")
	switch a := action.(type) {
	case ktesting.CreateAction:
		r := a.GetObject().(*appsv1.ControllerRevision).DeepCopy()
		if s.revisions[r.Name] != nil {
			return nil, apierrors.NewAlreadyExists(resource, r.Name)
		}
		r.UID = types.UID(r.Name)
		return put(s, "controllerrevisions", s.revisions, r), nil
	case ktesting.PatchAction:
		r := s.revisions[a.GetName()]
		if r == nil {
			return nil, apierrors.NewNotFound(resource, a.GetName())
		}
		r = r.DeepCopy()
		r.Revision = s.highest() + 1 // the only patch there is
		return put(s, "controllerrevisions", s.revisions, r), nil
	case ktesting.DeleteAction:
		if s.revisions[a.GetName()] == nil {
			return nil, apierrors.NewNotFound(resource, a.GetName())
		}
		remove(s, "controllerrevisions", s.revisions, a.GetName())
		return nil, nil
	case ktesting.GetAction:
		return s.revisions[a.GetName()], nil
	}
	return nil, fmt.Errorf("unexpected %s", action.GetVerb())
}

func (s *server) highest() (n int64) {
	for _, r := range s.revisions {
		n = max(n, r.Revision)
	}
	return n
}

func (s *server) handlePod(action ktesting.Action) (runtime.Object, error) {
	switch a := action.(type) {
	case ktesting.CreateAction:
		return s.createPod(a.GetObject().(*corev1.Pod))
	case ktesting.DeleteActionImpl:
		return nil, s.deletePod(a)
	case ktesting.ListAction:
		list := &corev1.PodList{}
		for _, p := range s.pods {
			list.Items = append(list.Items, *p)
		}
		return list, nil
	}
	return nil, fmt.Errorf("unexpected %s", action.GetVerb())
}

func (s *server) createPod(p *corev1.Pod) (runtime.Object, error) {
	lost := s.unlucky()
	if lost && s.rand.IntN(2) == 0 {
		return nil, apierrors.NewTimeoutError("not made", 1)
	}
	s.made++
	p = p.DeepCopy()
	p.Name = fmt.Sprintf("%s%d", p.GenerateName, s.made)
	p.UID, p.CreationTimestamp = types.UID(p.Name), metav1.NewTime(s.now().Truncate(time.Second))
	p = s.putPod(p)
	if lost {
		return nil, apierrors.NewTimeoutError("made, but the answer is lost", 1)
	}
	return p, nil
}

func (s *server) deletePod(a ktesting.DeleteActionImpl) error {
	p, ok := s.pods[a.GetName()]
	switch {
	case !ok:
		return apierrors.NewNotFound(corev1.Resource("pods"), a.GetName())
	case *a.DeleteOptions.Preconditions.UID != p.UID:
		return apierrors.NewConflict(corev1.Resource("pods"), p.Name, nil)
	case s.unlucky():
		return apierrors.NewInternalError(errors.New("not deleted"))
	case p.DeletionTimestamp == nil:
		p = p.DeepCopy()
		p.DeletionTimestamp = ptr.To(ago(0))
		s.putPod(p)
	}
	return nil
}
