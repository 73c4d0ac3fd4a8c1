package daemonset

import (
	"fmt"
	"math/rand/v2"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// server is an API server with one DaemonSet, whose answers get lost.
type server struct {
	*fixture.Server
	now       func() time.Time
	ds        *appsv1.DaemonSet
	sets      map[string]*appsv1.DaemonSet
	pods      map[string]*corev1.Pod
	nodes     map[string]*corev1.Node
	revisions map[string]*appsv1.ControllerRevision
}

func newServer(r *rand.Rand, ds *appsv1.DaemonSet, nodes int) *server {
	s := &server{Server: fixture.NewServer(r, 8, 4), sets: map[string]*appsv1.DaemonSet{}, pods: map[string]*corev1.Pod{},
		nodes: map[string]*corev1.Node{}, revisions: map[string]*appsv1.ControllerRevision{}}
	s.putSet(ds)
	for i := range nodes {
		s.putNode(node(fmt.Sprint("n", i)))
	}
	return s
}

func (s *server) putPod(p *corev1.Pod) *corev1.Pod    { return fixture.Put(s.Server, s.pods, p) }
func (s *server) putNode(n *corev1.Node) *corev1.Node { return fixture.Put(s.Server, s.nodes, n) }
func (s *server) putSet(ds *appsv1.DaemonSet) *appsv1.DaemonSet {
	s.ds = fixture.Put(s.Server, s.sets, ds)
	return s.ds
}

// handle answers the controller's calls.
func (s *server) handle(action ktesting.Action) (bool, runtime.Object, error) {
	return s.Answer(func() (runtime.Object, error) {
		switch action.GetResource().Resource {
		case "daemonsets":
			return s.handleSet(action)
		case "controllerrevisions":
			return s.handleRevision(action)
		}
		return s.handlePod(action)
	})
}

func (s *server) handleSet(action ktesting.Action) (runtime.Object, error) {
	update, ok := action.(ktesting.UpdateAction)
	if !ok {
		return s.ds, nil
	}
	live, ds, err := fixture.Updated(s.sets, update)
	if err != nil {
		return nil, err
	}
	changed := live.DeepCopy()
	changed.Status = ds.Status
	return s.putSet(changed), nil
}

func (s *server) handleRevision(action ktesting.Action) (runtime.Object, error) {
	switch a := action.(type) {
	case ktesting.CreateAction:
		return fixture.Create(s.Server, s.revisions, a)
	case ktesting.PatchAction:
		r, err := fixture.Named(s.revisions, a, a.GetName())
		if err != nil {
			return nil, err
		}
		r = r.DeepCopy()
		r.Revision = s.highest() + 1 // the only patch there is
		return fixture.Put(s.Server, s.revisions, r), nil
	case ktesting.DeleteActionImpl:
		if _, err := fixture.Deleted(s.revisions, a); err != nil {
			return nil, err
		}
		fixture.Remove(s.Server, s.revisions, a.GetName())
		return nil, nil
	case ktesting.GetAction:
		return fixture.Named(s.revisions, a, a.GetName())
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
		return fixture.Create(s.Server, s.pods, a, func(p *corev1.Pod) { p.CreationTimestamp = metav1.NewTime(s.now().Truncate(time.Second)) })
	case ktesting.DeleteActionImpl:
		p, err := fixture.Deleted(s.pods, a)
		if err == nil && p.DeletionTimestamp == nil {
			p = p.DeepCopy()
			p.DeletionTimestamp = ptr.To(ago(0))
			s.putPod(p)
		}
		return nil, err
	case ktesting.ListAction:
		list := &corev1.PodList{}
		for _, p := range s.pods {
			list.Items = append(list.Items, *p)
		}
		return list, nil
	}
	return nil, fmt.Errorf("unexpected %s", action.GetVerb())
}
