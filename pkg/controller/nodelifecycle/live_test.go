package nodelifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// leaseOf is the lease of a node, as the API server and the caches have it.
func leaseOf(name string, at time.Time) *coordinationv1.Lease {
	lease := renewed(at)
	lease.Namespace, lease.Name = corev1.NamespaceNodeLease, name
	return lease
}

// liveLeases has the API server show these leases, and returns the lists it was asked for.
func (r *rig) liveLeases(leases func() ([]coordinationv1.Lease, error)) *[]string {
	lists := &[]string{}
	r.client.PrependReactor("list", "leases", func(a clienttesting.Action) (bool, runtime.Object, error) {
		fields := a.(clienttesting.ListAction).GetListRestrictions().Fields
		*lists = append(*lists, strings.TrimSpace(a.GetNamespace()+" "+fields.String()))
		items, err := leases()
		list := &coordinationv1.LeaseList{}
		for _, lease := range items {
			if name, one := fields.RequiresExactMatch("metadata.name"); !one || name == lease.Name {
				list.Items = append(list.Items, lease)
			}
		}
		return true, list, err
	})
	return lists
}

func (r *rig) cacheLease(lease *coordinationv1.Lease) {
	if err := r.caches.Coordination().V1().Leases().Informer().GetIndexer().Update(lease); err != nil {
		r.t.Fatal(err)
	}
}

// nodesToWrite reconciles all nodes and returns what was written.
func (r *rig) passAndWrite(names ...string) []string {
	r.t.Helper()
	r.do(monitorPass)
	for _, name := range names {
		r.do(target{node: name})
	}
	return r.writes()
}

func TestBeforeANodeIsMarkedItsLeaseIsReadLive(t *testing.T) {
	r := newRig(t, node("a", ready("True")), node("b", ready("True")))
	r.cacheLease(leaseOf("a", noon))
	r.cacheLease(leaseOf("b", noon))
	live := []coordinationv1.Lease{*leaseOf("a", noon.Add(45*time.Second)), *leaseOf("b", noon)}
	lists := r.liveLeases(func() ([]coordinationv1.Lease, error) { return live, nil })
	r.do(monitorPass)
	equal(t, "reads while nothing is due", *lists, nil)

	r.elapse(51 * time.Second)
	equal(t, "writes", r.passAndWrite("a", "b"), []string{"nodes b/status", "nodes b"})
	slices.Sort(*lists) // which is read first does not matter
	equal(t, "reads", *lists, []string{"kube-node-lease metadata.name=a", "kube-node-lease metadata.name=b"})

	// The cache is behind now: all leases are listed, each pass, until it is not.
	*lists = nil
	for range 12 {
		r.clock.Step(5*time.Second + time.Millisecond)
		live[0] = *leaseOf("a", r.clock.Now())
		equal(t, "writes while the cache is behind", r.passAndWrite("a"), nil)
	}
	if len(*lists) != 12 || (*lists)[11] != "kube-node-lease" {
		t.Errorf("reads while the cache is behind: %q", *lists)
	}
	r.cacheLease(&live[0])
	*lists = nil
	r.clock.Step(5*time.Second + time.Millisecond)
	equal(t, "writes", r.passAndWrite("a"), nil)
	equal(t, "reads when the cache has caught up", *lists, nil)
}

// The race detector sees when a pass reads what workers write.
func TestNodesAreLookedAtWhileLeasesAreRead(t *testing.T) {
	a := node("a", ready("True"))
	r := newRig(t, a)
	r.do(monitorPass)
	r.elapse(51 * time.Second)
	q := r.visit()
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range 1000 {
			r.Controller.look(a)
		}
	}()
	for range 100 {
		if found, _, err := r.readLeases(t.Context(), q); err != nil || len(found) != 1 {
			t.Errorf("read the leases of %d nodes, want one: %v", len(found), err)
		}
	}
	<-done
}

func TestManyLeasesAreListedAtOnce(t *testing.T) {
	for count, want := range map[int]int{fewLeases: fewLeases, fewLeases + 1: 1} {
		t.Run(fmt.Sprintf("%d nodes", count), func(t *testing.T) {
			r := newRig(t, node("well", ready("True")))
			names := []string{"well"}
			for i := range count {
				names = append(names, fmt.Sprintf("n%d", i))
				r.cache(node(names[i+1], ready("True")))
			}
			lists := r.liveLeases(func() ([]coordinationv1.Lease, error) { return nil, nil })
			r.do(monitorPass)
			r.elapse(51 * time.Second)
			r.cache(node("well", ready("True"), beat(noon.Add(50*time.Second))))
			r.do(monitorPass)
			if len(*lists) != want {
				t.Errorf("reads: %q, want %d", *lists, want)
			}
			silent := 0
			for _, name := range names {
				if r.cluster.nodes[name].silent {
					silent++
				}
			}
			if silent != count {
				t.Errorf("%d nodes are silent, want %d", silent, count)
			}
		})
	}
}

func TestALeaseThatCannotBeReadMarksNobody(t *testing.T) {
	for name, count := range map[string]int{"one by one": 2, "in a list": fewLeases + 2} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, node("well", ready("True")))
			var names []string
			for i := range count {
				names = append(names, fmt.Sprintf("n%d", i))
				n := node(names[i], ready("True"))
				r.cache(n)
				if err := r.client.Tracker().Add(n); err != nil {
					t.Fatal(err)
				}
			}
			var refused error = apierrors.NewServiceUnavailable("not now")
			lists := r.liveLeases(func() ([]coordinationv1.Lease, error) { return nil, refused })
			r.do(monitorPass)
			beats := func() {
				r.clock.Step(5 * time.Second)
				r.cache(node("well", ready("True"), beat(r.clock.Now())))
			}
			r.elapse(46 * time.Second)
			for i := range 4 {
				beats()
				equal(t, "writes while leases cannot be read", r.passAndWrite(names...), nil)
				if len(*lists) != i+1 {
					t.Errorf("reads: %q, want one a pass", *lists)
				}
			}
			refused = nil
			beats()
			if done := r.passAndWrite(names...); len(done) != 2*count {
				t.Errorf("writes when leases can be read again: %q", done)
			}
		})
	}
}

func TestWhichAnswersAreTrouble(t *testing.T) {
	nodes := corev1.Resource("nodes")
	for name, tc := range map[string]struct {
		err  error
		want bool
	}{
		"it is done":         {nil, false},
		"no answer":          {context.DeadlineExceeded, true},
		"not in time":        {apierrors.NewServerTimeout(nodes, "patch", 1), true},
		"too many requests":  {apierrors.NewTooManyRequests("later", 1), true},
		"it has changed":     {apierrors.NewConflict(nodes, "a", errors.New("it has changed")), false},
		"it is not allowed":  {apierrors.NewForbidden(nodes, "a", errors.New("no")), false},
		"it is gone already": {apierrors.NewNotFound(nodes, "a"), false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := requestsFailed(act.Results{{}, {Err: tc.err}}); got != tc.want {
				t.Errorf("trouble: %v", got)
			}
		})
	}
}

func TestWhatAPassSaysOfWhomItHolds(t *testing.T) {
	o := observedPass{findings: &findings{unproven: 3, unread: errors.New("list leases: away")}, nodes: 7}
	if want := "7 nodes, 0 to write; 3 nodes may be silent and wait until their leases are read live; list leases: away"; o.plan(noon).Why != want {
		t.Errorf("got %q, want %q", o.plan(noon).Why, want)
	}
	if n := len(o.counts()); n != 5 {
		t.Errorf("%d counts, want a failed read among them", n)
	}
	o = observedPass{findings: &findings{held: 3}, nodes: 7}
	if want := "7 nodes, 0 to write; the brake holds 3 silent nodes"; o.plan(noon).Why != want {
		t.Errorf("got %q, want %q", o.plan(noon).Why, want)
	}
}

func TestTheBrakeTellsOfItself(t *testing.T) {
	r := newRig(t, node("a", ready("True")), node("b", ready("True")), node("c", ready("True")))
	r.cluster.brakeShare, r.leader.Namespace, r.leader.Name = 0.5, "kube-system", "leader"
	r.do(monitorPass)
	r.recorded()
	r.elapse(46 * time.Second)
	step := func() []string {
		r.clock.Step(5 * time.Second)
		r.cache(node("c", ready("True"), beat(r.clock.Now())))
		r.do(monitorPass)
		return r.recorded()
	}
	// A write fails: its answer is lost.
	r.client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewServerTimeout(corev1.Resource("nodes"), "patch", 1)
	})
	tainted := node("c", ready("True"), taints("node.kubernetes.io/not-ready:NoSchedule"))
	r.cache(tainted)
	if r.nodeRunner.Reconcile(context.Background(), target{node: "c"}).Err() == nil {
		t.Fatal("the write did not fail")
	}
	equal(t, "events", step(), []string{"Warning NodeOutageBrakeApplied 2 of 3 nodes fell silent within 50s in which requests of this process failed or its watch was behind: " +
		"2 nodes are not marked unknown until nothing has failed for 50s. Nodes that are lost can be annotated with kube-kcm.github.io/node-lost=true"})
	equal(t, "events while it holds", step(), nil)
	r.clock.Step(45 * time.Second)
	equal(t, "events", step(), []string{"Normal NodeOutageBrakeReleased Nodes are marked unknown again: nothing has failed for 50s, or no node waits"})
}
