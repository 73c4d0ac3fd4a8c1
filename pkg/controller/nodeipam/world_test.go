package nodeipam

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

// cluster is an API server with nodes, a cache that is behind it, and the controller,
// which may be another one after each restart.
type cluster struct {
	*testworld.World
	o      Options
	server map[string]*corev1.Node
	names  []string
	uids   int
	// toShow are the changes that the cache has not seen yet, the oldest first.
	toShow []*corev1.Node
	gone   map[*corev1.Node]bool
	// inFlight are patches whose answer was lost and which have not arrived yet.
	inFlight []func()
	faulty   bool
	events   *record.FakeRecorder
	in       informers.SharedInformerFactory
	c        *Controller
}

// has notes a change for the cache.
func (w *cluster) has(n *corev1.Node) { w.toShow = append(w.toShow, n.DeepCopy()) }

func (w *cluster) remove(n *corev1.Node) {
	delete(w.server, n.Name)
	last := n.DeepCopy()
	w.gone[last] = true
	w.toShow = append(w.toShow, last)
}

// show lets the cache see the oldest change.
func (w *cluster) show() string {
	if len(w.toShow) == 0 {
		return ""
	}
	n := w.toShow[0]
	w.toShow = w.toShow[1:]
	store := w.in.Core().V1().Nodes().Informer().GetStore()
	if w.gone[n] {
		_ = store.Delete(n)
		return n.Name + " is gone"
	}
	_ = store.Add(n)
	return fmt.Sprintf("%s %s has %v", n.Name, n.UID, n.Spec.PodCIDRs)
}

// start begins with an empty memory, and with a cache that may be behind.
func (w *cluster) start(t *testing.T) string {
	for _, land := range w.inFlight {
		land() // a leader takes over long after the last write of the one before
	}
	w.inFlight = nil
	client := &ktesting.Fake{}
	client.AddReactor("get", "nodes", func(a ktesting.Action) (bool, runtime.Object, error) {
		name := a.(ktesting.GetAction).GetName()
		if n := w.server[name]; n != nil {
			return true, n.DeepCopy(), nil
		}
		return true, nil, apierrors.NewNotFound(corev1.Resource("nodes"), name)
	})
	client.AddReactor("list", "nodes", func(ktesting.Action) (bool, runtime.Object, error) {
		list := &corev1.NodeList{}
		for _, n := range w.server {
			list.Items = append(list.Items, *n.DeepCopy())
		}
		return true, list, nil
	})
	client.AddReactor("patch", "nodes", func(a ktesting.Action) (bool, runtime.Object, error) {
		return w.patched(a.(ktesting.PatchAction))
	})
	w.events = record.NewFakeRecorder(100000)
	c, err := New(w.in.Core().V1().Nodes(), fixture.Hand(client, w.events), w.o)
	if err != nil {
		t.Fatal(err)
	}
	c.LookLive(fixture.LiveOf(func(schema.GroupResource, string) ([]metav1.Object, error) {
		var all []metav1.Object
		for _, n := range w.server {
			all = append(all, n)
		}
		return all, nil
	}))
	w.c = c
	return "another leader"
}

// patched answers a patch: as the API server does, or by losing the answer.
func (w *cluster) patched(a ktesting.PatchAction) (bool, runtime.Object, error) {
	var patch struct {
		Metadata struct{ UID types.UID }
		Spec     corev1.NodeSpec
	}
	if err := json.Unmarshal(a.GetPatch(), &patch); err != nil {
		return true, nil, err
	}
	land := func() (*corev1.Node, error) {
		n := w.server[a.GetName()]
		switch {
		case n == nil:
			return nil, apierrors.NewNotFound(corev1.Resource("nodes"), a.GetName())
		case n.UID != patch.Metadata.UID:
			return nil, apierrors.NewConflict(corev1.Resource("nodes"), a.GetName(), errors.New("another UID"))
		case len(n.Spec.PodCIDRs) > 0 && !slices.Equal(n.Spec.PodCIDRs, patch.Spec.PodCIDRs):
			return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), n.Name, nil)
		}
		n.Spec.PodCIDR, n.Spec.PodCIDRs = patch.Spec.PodCIDR, patch.Spec.PodCIDRs
		w.has(n)
		return n.DeepCopy(), nil
	}
	fault := 9
	if w.faulty {
		fault = w.Rand.IntN(10)
	}
	switch fault {
	case 0: // carried out, and the answer is lost
		_, _ = land()
		return true, nil, apierrors.NewTimeoutError("lost", 0)
	case 1: // arrives later
		w.inFlight = append(w.inFlight, func() { _, _ = land() })
		return true, nil, apierrors.NewTimeoutError("lost", 0)
	case 2: // never arrives
		return true, nil, apierrors.NewTimeoutError("lost", 0)
	case 3:
		return true, nil, apierrors.NewForbidden(corev1.Resource("nodes"), a.GetName(), errors.New("a webhook"))
	}
	n, err := land()
	if err != nil {
		return true, nil, err
	}
	return true, n, nil
}

func (w *cluster) anyName() string { return w.names[w.Rand.IntN(len(w.names))] }

// life adds a node, or lets one go.
func (w *cluster) life(budget *int) string {
	if *budget == 0 {
		return ""
	}
	*budget--
	name := w.anyName()
	n := w.server[name]
	switch {
	case n == nil:
		w.uids++
		n = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(fmt.Sprintf("uid-%d", w.uids))}}
		w.server[name] = n
		w.has(n)
		return name + " registers"
	case n.DeletionTimestamp == nil && w.Rand.IntN(3) == 0:
		n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		w.has(n)
		return name + " is being deleted"
	}
	w.remove(n)
	return name + " is deleted"
}

// overlap returns two nodes that have common addresses, or one with those of Services.
func (w *cluster) overlap() string {
	owners := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(w.server)) {
		for _, cidr := range w.server[name].Spec.PodCIDRs {
			if other, taken := owners[cidr]; taken {
				return fmt.Sprintf("%s and %s both have %s", other, name, cidr)
			}
			owners[cidr] = name
			for _, services := range w.o.Services {
				if services.Overlaps(netip.MustParsePrefix(cidr)) {
					return fmt.Sprintf("%s has %s of the Services", name, cidr)
				}
			}
		}
	}
	return ""
}

// asleep returns how many nodes wait for a block although there are more than have been woken.
func (w *cluster) asleep() string {
	b := w.c.book
	if due := min(b.left(), uint64(len(b.starving))); uint64(len(b.woken)) < due {
		return fmt.Sprintf("%d of %v are to be woken, and %v are", due, b.starving, b.woken)
	}
	return ""
}

func newCluster(t *testing.T, seed uint64) *cluster {
	w := &cluster{World: testworld.New(seed), server: map[string]*corev1.Node{}, gone: map[*corev1.Node]bool{}, faulty: true,
		in: informers.NewSharedInformerFactory(fake.NewClientset(), 0)}
	w.o = Options{Ranges: []Range{rangeOf("10.244.0.0/21", 24)}, Services: []netip.Prefix{netip.MustParsePrefix("10.244.3.0/26")}}
	if w.Rand.IntN(2) == 0 {
		w.o.Ranges = []Range{rangeOf("fd00::/61", 64), w.o.Ranges[0]}
	}
	for i := range 4 + w.Rand.IntN(6) { // up to nine nodes for seven blocks
		w.names = append(w.names, fmt.Sprintf("node-%d", i))
	}
	w.start(t)
	return w
}

// TestNoBlockIsOnTwoNodes plays nodes that come and go, lost and late writes, a cache that
// is behind and leaders that follow each other.
func TestNoBlockIsOnTwoNodes(t *testing.T) {
	for seed := range testworld.Seeds(t, 300) {
		w := newCluster(t, seed)
		lives, restarts, turns := 60, 5, 300
		spend := func(budget *int, do func() string) func() string {
			return func() string {
				if *budget == 0 {
					return ""
				}
				*budget--
				return do()
			}
		}
		w.Add(
			testworld.Actor{Name: "nodes", Step: func() string { return w.life(&lives) }},
			testworld.Actor{Name: "cache", Step: w.show},
			testworld.Actor{Name: "controller", Step: spend(&turns, func() string {
				name := w.anyName()
				err := w.c.Reconcile(context.Background(), name).Err()
				return fmt.Sprintf("%s: %v", name, err)
			})},
			testworld.Actor{Name: "late writes", Step: func() string {
				if len(w.inFlight) == 0 {
					return ""
				}
				w.inFlight[0]()
				w.inFlight = w.inFlight[1:]
				return "one arrives"
			}},
			testworld.Actor{Name: "leader", Step: func() string {
				if restarts == 0 || w.Rand.IntN(20) != 0 {
					return ""
				}
				restarts--
				return w.start(t)
			}},
		)
		w.Always(w.overlap)
		w.Always(w.asleep)
		if err := w.Run(3000); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if broken := w.settle(); broken != "" {
			t.Fatalf("seed %d: %s\n%s", seed, broken, w.Transcript())
		}
	}
}

// settle ends all trouble. Then every node has its CIDRs, or there is no block left, and
// the book has what the nodes have.
func (w *cluster) settle() string {
	w.faulty = false
	for range 5 {
		for w.show() != "" {
		}
		for _, name := range w.names {
			_ = w.c.Reconcile(context.Background(), name).Err()
		}
	}
	served := uint64(0)
	for name, n := range w.server {
		if len(n.Spec.PodCIDRs) == len(w.o.Ranges) {
			served++
		} else if full := func(r *blocks) bool { return r.used == r.all }; n.DeletionTimestamp == nil && !slices.ContainsFunc(w.c.book.ranges, full) {
			return name + " has nothing although there are blocks"
		}
	}
	for _, r := range w.c.book.ranges {
		withheld := uint64(0)
		for _, s := range r.withheld {
			withheld += s.size()
		}
		held := uint64(0)
		for name, h := range w.c.book.nodes {
			if n := w.server[name]; n == nil || n.UID != h.uid {
				return fmt.Sprintf("%s holds blocks and is gone", name)
			}
			held++
		}
		if r.used != withheld+held || held < served {
			return fmt.Sprintf("%d blocks of %s are used: by %d nodes (%d have them), and %d withheld", r.used, r.CIDR, held, served, withheld)
		}
	}
	return w.overlap()
}
