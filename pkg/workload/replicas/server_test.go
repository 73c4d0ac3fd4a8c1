package replicas

import (
	"fmt"
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	podrules "github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// server is an API server with one ReplicaSet, whose answers get lost and whose
// watches lag.
type server struct {
	*fixture.Server
	rs      *appsv1.ReplicaSet
	pods    map[string]*corev1.Pod
	deleted int
	tooFar  bool // a deletion left fewer pods than wanted
}

func newServer(r *rand.Rand, replicas int) *server {
	s := &server{Server: fixture.NewServer(r, 8, 4), pods: map[string]*corev1.Pod{}}
	s.putSet(replicaSet(replicas))
	return s
}

func (s *server) sets() map[string]*appsv1.ReplicaSet {
	return map[string]*appsv1.ReplicaSet{s.rs.Name: s.rs}
}

func (s *server) putSet(rs *appsv1.ReplicaSet) *appsv1.ReplicaSet {
	s.rs = fixture.Put(s.Server, map[string]*appsv1.ReplicaSet{}, rs)
	return s.rs
}

func (s *server) put(p *corev1.Pod) *corev1.Pod { return fixture.Put(s.Server, s.pods, p) }

func (s *server) active() (n int) {
	for _, p := range s.pods {
		if podrules.Active(p) && metav1.IsControlledBy(p, s.rs) {
			n++
		}
	}
	return n
}

// handle answers the controller's calls.
func (s *server) handle(action clienttesting.Action) (bool, runtime.Object, error) {
	return s.Answer(func() (runtime.Object, error) {
		if action.GetResource().Resource == "replicasets" {
			return s.handleSet(action)
		}
		switch a := action.(type) {
		case clienttesting.CreateAction:
			return fixture.Create(s.Server, s.pods, a, func(p *corev1.Pod) { p.CreationTimestamp = ago(0) })
		case clienttesting.DeleteActionImpl:
			return nil, s.delete(a)
		case clienttesting.PatchAction:
			return s.patch(a)
		case clienttesting.ListAction:
			list := &corev1.PodList{}
			for _, p := range s.pods {
				list.Items = append(list.Items, *p)
			}
			return list, nil
		}
		return nil, fmt.Errorf("unexpected %s", action.GetVerb())
	})
}

func (s *server) handleSet(action clienttesting.Action) (runtime.Object, error) {
	update, ok := action.(clienttesting.UpdateAction)
	if !ok {
		return s.rs, nil
	}
	live, rs, err := fixture.Updated(s.sets(), update)
	if err != nil {
		return nil, err
	}
	changed := live.DeepCopy()
	changed.Status = rs.Status
	return s.putSet(changed), nil
}

func (s *server) delete(a clienttesting.DeleteActionImpl) error {
	p, err := fixture.Deleted(s.pods, a)
	if err != nil || p.DeletionTimestamp != nil {
		return err
	}
	p = p.DeepCopy()
	p.DeletionTimestamp = ptr.To(ago(0))
	s.put(p)
	s.deleted++
	s.tooFar = s.tooFar || s.active() < int(*s.rs.Spec.Replicas)
	return nil
}

func (s *server) patch(a clienttesting.PatchAction) (runtime.Object, error) {
	p, err := fixture.Named(s.pods, a, a.GetName())
	if err != nil {
		return nil, err
	}
	p = p.DeepCopy()
	if metav1.IsControlledBy(p, s.rs) {
		p.OwnerReferences = nil
	} else {
		p.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(s.rs, testKind{}.Type())}
	}
	return s.put(p), nil
}
