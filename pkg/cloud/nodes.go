package cloud

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
)

// pass is what the cloud-node-lifecycle-controller looks at in one turn of all nodes, and
// which of them it has deleted. The library lists, asks the provider and deletes by name:
// a node of that name that registered in between would go, and one that has gone would be
// deleted again, with another event, until the cache shows it.
type pass struct {
	mu      sync.Mutex
	listed  map[string]types.UID
	deleted map[types.UID]bool
}

func newPass() *pass {
	return &pass{listed: map[string]types.UID{}, deleted: map[types.UID]bool{}}
}

// begin notes the nodes of a turn and leaves out those that were deleted before it.
func (p *pass) begin(nodes []*corev1.Node) []*corev1.Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.deleted
	p.listed, p.deleted = map[string]types.UID{}, map[types.UID]bool{}
	return slices.DeleteFunc(slices.Clone(nodes), func(n *corev1.Node) bool {
		if before[n.UID] {
			p.deleted[n.UID] = true
			return true
		}
		p.listed[n.Name] = n.UID
		return false
	})
}

func (p *pass) uid(name string) (types.UID, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	uid, ok := p.listed[name]
	return uid, ok
}

func (p *pass) gone(uid types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deleted[uid] = true
}

// informer lists the nodes of a turn.
type informer struct {
	coreinformers.NodeInformer
	pass *pass
	gate *gate
}

// Lister returns the lister of the turns.
func (i informer) Lister() corelisters.NodeLister {
	return lister{i.NodeInformer.Lister(), i.pass, i.gate}
}

type lister struct {
	corelisters.NodeLister
	pass *pass
	gate *gate
}

// List returns the nodes of the turn that begins. It waits for the end of a pause: by nodes
// as they were before it, some would be deleted that are ready since.
func (l lister) List(selector labels.Selector) ([]*corev1.Node, error) {
	if err := l.gate.turn(metav1.NamespaceNone); err != nil {
		return nil, err
	}
	nodes, err := l.NodeLister.List(selector)
	if err != nil {
		return nil, err
	}
	return l.pass.begin(nodes), nil
}

// clientset deletes the nodes of a turn and no others of their names.
type clientset struct {
	kubernetes.Interface
	pass *pass
}

// CoreV1 returns the client of the core group.
func (c clientset) CoreV1() typedcorev1.CoreV1Interface {
	return core{c.Interface.CoreV1(), c.pass}
}

type core struct {
	typedcorev1.CoreV1Interface
	pass *pass
}

// Nodes returns the client of nodes.
func (c core) Nodes() typedcorev1.NodeInterface { return nodes{c.CoreV1Interface.Nodes(), c.pass} }

type nodes struct {
	typedcorev1.NodeInterface
	pass *pass
}

// Delete deletes the node that was looked at.
func (n nodes) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	uid, ok := n.pass.uid(name)
	if !ok {
		return fmt.Errorf("delete node %s: it was not looked at in this turn", name)
	}
	options.Preconditions = metav1.NewUIDPreconditions(string(uid))
	err := n.NodeInterface.Delete(ctx, name, options)
	if err == nil {
		n.pass.gone(uid)
	}
	return err
}
