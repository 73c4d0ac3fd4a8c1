package nodeipam

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// rig is a controller whose API server has these nodes, and whose cache is empty.
type rig struct {
	*fixture.Rig
	*Controller
	t *testing.T
}

func newRig(t *testing.T, cidr string, mask int, live ...runtime.Object) *rig {
	t.Helper()
	r := fixture.New(fake.NewClientset(live...), noon)
	c, err := New(r.In.Core().V1().Nodes(), r.Hand(), Options{Ranges: []Range{rangeOf(cidr, mask)}})
	if err != nil {
		t.Fatal(err)
	}
	c.LookLive(fixture.Live(r.Client))
	return &rig{r, c, t}
}

func other(name, uid string, cidrs ...string) *corev1.Node {
	n := aNode(cidrs...)
	n.Name, n.UID = name, types.UID(uid)
	return n
}

// reconcile reconciles a node and returns what was told and asked for.
func (r *rig) reconcile(name string) string {
	r.t.Helper()
	r.Client.ClearActions()
	err := r.Reconcile(r.t.Context(), name).Err()
	text := strings.Trim(r.Requests()+"; "+r.Told(), "; ")
	if err != nil {
		text += "; failed"
	}
	return text
}

func (r *rig) uncache(n *corev1.Node) {
	_ = r.In.Core().V1().Nodes().Informer().GetStore().Delete(n)
}

func (r *rig) used() uint64 { return r.book.ranges[0].used }

func TestANodeIsServedAfterAList(t *testing.T) {
	a, b := other("a", "1"), other("b", "2", "10.0.0.0/24")
	r := newRig(t, "10.0.0.0/22", 24, a, b)
	r.Cache(t, a)
	if got := r.reconcile("a"); got != "list nodes, patch nodes" {
		t.Errorf("did %s", got)
	}
	live, err := r.Client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || live.Spec.PodCIDR != "10.0.1.0/24" || r.used() != 2 {
		t.Errorf("got %s, %d used, %v", live.Spec.PodCIDR, r.used(), err)
	}
	if r.Len() != 2 {
		t.Errorf("%d of the nodes in the list are looked at", r.Len())
	}
}

func TestNothingIsHandedOutBeforeTheList(t *testing.T) {
	a := other("a", "1")
	r := newRig(t, "10.0.0.0/22", 24, a)
	r.Cache(t, a)
	r.Fail("list", "nodes", errors.New("not yet"))
	if got := r.reconcile("a"); got != "list nodes; failed" || r.used() != 0 {
		t.Errorf("did %s", got)
	}
	if got := r.reconcile("a"); got != "; failed" {
		t.Errorf("listed again at once: %s", got)
	}
	r.Clock.Step(listAgain)
	if got := r.reconcile("a"); got != "list nodes; failed" {
		t.Errorf("did %s", got)
	}
}

func TestANodeThatTheCacheNeverShows(t *testing.T) {
	gone, there := other("gone", "1", "10.0.0.0/24"), other("there", "2", "10.0.1.0/24")
	r := newRig(t, "10.0.0.0/22", 24, gone, there)
	r.reconcile("x")
	if err := r.Client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", "gone"); err != nil {
		t.Fatal(err)
	}
	if got := r.reconcile("gone"); got != "get nodes" || r.used() != 1 {
		t.Errorf("did %s, %d used", got, r.used())
	}
	if got := r.reconcile("there"); got != "get nodes" || r.used() != 1 {
		t.Errorf("did %s, %d used", got, r.used())
	}
	r.Fail("get", "nodes", errors.New("no answer"))
	if got := r.reconcile("there"); got != "get nodes; failed" || r.used() != 1 {
		t.Errorf("did %s, %d used", got, r.used())
	}
}

func TestACacheThatIsBehindTheList(t *testing.T) {
	r := newRig(t, "10.0.0.0/22", 24, other("a", "2", "10.0.0.0/24"))
	r.Cache(t, other("a", "1")) // an earlier node of that name
	if got := r.reconcile("a"); got != "list nodes, get nodes" || r.used() != 1 {
		t.Errorf("did %s, %d used", got, r.used())
	}
	r.Cache(t, other("a", "2"))
	if got := r.reconcile("a"); got != "" || r.used() != 1 {
		t.Errorf("did %s, %d used", got, r.used())
	}
	r.Cache(t, other("a", "2", "10.0.0.0/24"))
	if got := r.reconcile("a"); got != "" || r.used() != 1 {
		t.Errorf("did %s, %d used", got, r.used())
	}
	r.uncache(other("a", "2"))
	if got := r.reconcile("a"); got != "" || r.used() != 0 {
		t.Errorf("did %s, %d used", got, r.used())
	}
}

func TestANodeThatLostItsCIDR(t *testing.T) {
	r := newRig(t, "10.0.0.0/22", 24, other("a", "2", "10.0.2.0/24"))
	r.Cache(t, other("a", "2"))
	if got := r.reconcile("a"); got != "list nodes" {
		t.Errorf("did %s", got)
	}
	if err := r.Client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), other("a", "2"), ""); err != nil { // a restore of etcd
		t.Fatal(err)
	}
	if got := r.reconcile("a"); got != "get nodes, patch nodes" || r.used() != 1 {
		t.Errorf("did %s, %d used", got, r.used())
	}
	live, err := r.Client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || live.Spec.PodCIDR != "10.0.2.0/24" {
		t.Errorf("it has %v: %v", live, err)
	}
}

// TestABlockThatAnotherNodeGotMeanwhile has a node whose block is held while another gets it:
// it gets another block, unless a live look shows that its write took place.
func TestABlockThatAnotherNodeGotMeanwhile(t *testing.T) {
	for name, tc := range map[string]struct {
		live string
		want []string
	}{
		"refused until then": {"", []string{"get nodes, patch nodes", "10.0.1.0/24"}},
		"a lost answer":      {"10.0.0.0/24", []string{"get nodes", "10.0.0.0/24"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, "10.0.0.0/22", 24, other("a", "1"))
			r.Cache(t, other("a", "1"))
			refused := true
			r.Client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return refused, nil, apierrors.NewForbidden(corev1.Resource("nodes"), "a", nil)
			})
			if got := r.reconcile("a"); !strings.Contains(got, "failed") {
				t.Fatalf("did %s", got)
			}
			refused = false
			r.Cache(t, other("b", "2", "10.0.0.0/24")) // somebody gave it what is held for the other
			r.reconcile("b")
			if tc.live != "" {
				if err := r.Client.Tracker().Update(corev1.SchemeGroupVersion.WithResource("nodes"), other("a", "1", tc.live), ""); err != nil {
					t.Fatal(err)
				}
			}
			if got := r.reconcile("a"); got != "" {
				t.Errorf("did %s", got)
			}
			got := []string{r.reconcile("a")}
			live, err := r.Client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, append(got, live.Spec.PodCIDR)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRetriesComeEveryFiveMinutesAtLeast(t *testing.T) {
	pauses := runner.Retries[string](firstRetry, lastRetry)
	if got := pauses.When("a"); got != 5*time.Millisecond {
		t.Errorf("the first after %s", got)
	}
	for range 30 {
		pauses.When("a")
	}
	if got := pauses.When("a"); got != 5*time.Minute {
		t.Errorf("the longest is %s", got)
	}
}

func TestATryThatSucceedsMakesUpForOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want string
	}{
		"refused once": {apierrors.NewInternalError(errors.New("etcd")), "list nodes, 2 patch nodes"},
		"a stop":       {context.Canceled, "list nodes, patch nodes; failed"},
	} {
		r, tries := newRig(t, "10.0.0.0/22", 24, other("a", "2")), 0
		r.Cache(t, other("a", "2"))
		r.Client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
			tries++
			return tries == 1, nil, tc.err
		})
		if got := r.reconcile("a"); got != tc.want {
			t.Errorf("%s: did %s", name, got)
		}
	}
}

// A webhook takes the CIDRs off: the node is tried again, as nothing else would wake it.
func TestANodeThatIsNotGivenWhatWasWritten(t *testing.T) {
	r := newRig(t, "10.0.0.0/22", 24, other("a", "2"))
	r.Cache(t, other("a", "2"))
	lost := true
	r.Client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) { return lost, other("a", "2"), nil })
	if got := r.reconcile("a"); got != "list nodes, patch nodes; failed" {
		t.Errorf("did %s", got)
	}
	lost = false
	if got := r.reconcile("a"); got != "patch nodes" || r.used() != 1 {
		t.Errorf("did %s, %d used", got, r.used())
	}
}

func TestANodeMadeAgainAllTheTime(t *testing.T) {
	r := newRig(t, "10.0.0.0/22", 24)
	r.reconcile("x")
	for i := range 50 {
		n := other("a", fmt.Sprint(i))
		_ = r.Client.Tracker().Delete(corev1.SchemeGroupVersion.WithResource("nodes"), "", "a")
		if err := r.Client.Tracker().Add(n); err != nil {
			t.Fatal(err)
		}
		r.Cache(t, n)
		if got := r.reconcile("a"); got != "patch nodes" || r.used() != 1 {
			t.Fatalf("did %s, %d used", got, r.used())
		}
	}
}

func TestAWaitingNodeIsWokenByABlock(t *testing.T) {
	a, b, c := other("a", "1"), other("b", "2"), other("c", "3")
	r := newRig(t, "10.0.0.0/24", 24, a, b, c)
	r.Cache(t, a, b, c)
	r.reconcile("a")
	for _, name := range []string{"b", "c"} {
		if got := r.reconcile(name); got != "Normal CIDRNotAvailable Node "+name+" status is now: CIDRNotAvailable; failed" {
			t.Errorf("did %s", got)
		}
	}
	if free := r.book.gone("a", "another UID"); free != nil || r.used() != 1 {
		t.Errorf("the block is free: %v", free)
	}
	if diff := cmp.Diff([]string{"b"}, r.book.gone("a", "1")); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
	if got := r.reconcile("b"); got != "patch nodes" {
		t.Errorf("did %s", got)
	}
	if diff := cmp.Diff([]string{"c"}, r.book.starving); diff != "" {
		t.Errorf("still waiting (-want +got):\n%s", diff)
	}
}

// starved is a book of four blocks of each range: a to d have them, and p to s wait.
func starved(ranges ...Range) *book {
	b := newBook(Options{Ranges: ranges})
	for _, name := range strings.Split("abcdpqrs", "") {
		b.propose(node{name: name, uid: types.UID(name)})
	}
	return b
}

func TestAsManyNodesAreWokenAsThereAreBlocks(t *testing.T) {
	four, six := rangeOf("10.244.0.0/22", 24), rangeOf("fd00::/62", 64)
	type step struct {
		name, does string // or the CIDRs that it has
		wakes      string
	}
	for name, tc := range map[string]struct {
		ranges []Range
		steps  []step
	}{
		"three blocks before anyone comes": {[]Range{four}, []step{{"a", "goes", "p"}, {"b", "goes", "q"}, {"c", "goes", "r"}}},
		"who comes takes nobody's turn":    {[]Range{four}, []step{{"a", "goes", "p"}, {"p", "comes", ""}, {"b", "goes", "q"}}},
		"a new node is faster":             {[]Range{four}, []step{{"a", "goes", "p"}, {"new", "comes", ""}, {"p", "comes", ""}, {"b", "goes", "p"}}},
		"one that leaves passes it on":     {[]Range{four}, []step{{"a", "goes", "p"}, {"p", "leaves", "q"}, {"q", "leaves", "r"}}},
		"one that has left has no turn":    {[]Range{four}, []step{{"p", "leaves", ""}, {"a", "goes", "q"}}},
		"one that is gone passes it on":    {[]Range{four}, []step{{"a", "goes", "p"}, {"p", "goes", "q"}}},
		"and so does one that has a CIDR":  {[]Range{four}, []step{{"a", "goes", "p"}, {"p", "10.9.0.0/24", "q"}}},
		"CIDRs that are known wake nobody": {[]Range{four}, []step{{"a", "10.244.0.0/24", ""}}},
		"others than it was to get":        {[]Range{four}, []step{{"a", "10.9.0.0/24", "p"}}},
		"all at once":                      {[]Range{four}, []step{{"d", "10.244.0.0/22", ""}, {"a", "goes", ""}, {"b", "goes", ""}, {"c", "goes", ""}, {"d", "goes", "p q r s"}}},
		"a block of each range is needed":  {[]Range{four, six}, []step{{"a", "10.244.0.0/24", ""}, {"b", "fd00:0:0:1::/64", "p"}, {"c", "goes", "q"}}},
	} {
		t.Run(name, func(t *testing.T) {
			b := starved(tc.ranges...)
			for i, s := range tc.steps {
				var woken []string
				switch uid := types.UID(s.name); s.does {
				case "goes":
					woken = b.gone(s.name, uid)
				case "leaves":
					woken = b.leaves(s.name)
				case "comes":
					b.propose(node{name: s.name, uid: uid})
				default:
					woken, _ = b.show(node{s.name, uid, []string{s.does}})
				}
				if got := strings.Join(woken, " "); got != s.wakes {
					t.Errorf("step %d wakes %q, want %q", i+1, got, s.wakes)
				}
			}
		})
	}
}

func TestANodeThatIsBeingDeletedPassesItsTurnOn(t *testing.T) {
	a, b, c := other("a", "1"), other("b", "2"), other("c", "3")
	r := newRig(t, "10.0.0.0/24", 24, a) // the list has a, and puts it into the queue
	r.Cache(t, a, b, c)
	for _, name := range []string{"a", "b", "c"} {
		r.reconcile(name)
	}
	r.Cache(t, leaving(other("b", "2")))
	r.uncache(a)
	if got := r.reconcile("a"); got != "" || r.Len() != 2 {
		t.Errorf("did %s, %d nodes are to be looked at", got, r.Len())
	}
	if got := r.reconcile("b"); got != "" || r.Len() != 3 {
		t.Errorf("did %s, %d nodes are to be looked at", got, r.Len())
	}
	if diff := cmp.Diff([]string{"c"}, r.book.starving); diff != "" {
		t.Errorf("still waiting (-want +got):\n%s", diff)
	}
}

func TestWhatIsOutside(t *testing.T) {
	b := newBook(Options{Ranges: []Range{rangeOf("10.244.0.0/21", 24), rangeOf("fd00::/56", 64)}, Services: []netip.Prefix{netip.MustParsePrefix("10.244.0.0/24")}})
	for name, tc := range map[string]struct {
		cidrs []string
		want  string
		used  [2]uint64
	}{
		"both":                 {[]string{"10.244.1.0/24", "fd00::/64"}, "", [2]uint64{2, 1}},
		"in another order":     {[]string{"fd00::/64", "10.244.1.0/24"}, "", [2]uint64{2, 1}},
		"one family":           {[]string{"10.244.1.0/24"}, "", [2]uint64{2, 0}},
		"of Services":          {[]string{"10.244.0.0/24"}, "", [2]uint64{1, 0}},
		"of another mask size": {[]string{"10.244.2.0/23"}, "", [2]uint64{3, 0}},
		"elsewhere":            {[]string{"10.9.0.0/24"}, "10.9.0.0/24 is in no cluster CIDR (10.244.0.0/21,fd00::/56)", [2]uint64{1, 0}},
		"one of two elsewhere": {[]string{"10.244.1.0/24", "fe00::/64"}, "fe00::/64 is in no cluster CIDR (10.244.0.0/21,fd00::/56)", [2]uint64{2, 0}},
		"leading zeros":        {[]string{"010.244.001.000/24"}, "", [2]uint64{2, 0}},
		"no CIDR":              {[]string{"x"}, "invalid CIDR address: x", [2]uint64{1, 0}},
	} {
		_, outside := b.show(node{"a", "1", tc.cidrs})
		got := ""
		if outside != nil {
			got = outside.Error()
		}
		if used := [2]uint64{b.ranges[0].used, b.ranges[1].used}; got != tc.want || used != tc.used {
			t.Errorf("%s: %q, used %v", name, got, used)
		}
		b.gone("a", "1")
		if used := [2]uint64{b.ranges[0].used, b.ranges[1].used}; used != [2]uint64{1, 0} {
			t.Errorf("%s: used %v when it is gone", name, used)
		}
	}
}

func TestANodeThatIsMadeAnewTakesItsCIDRAlong(t *testing.T) {
	b := newBook(Options{Ranges: []Range{rangeOf("10.244.0.0/21", 24)}})
	cidrs := []string{"10.244.3.0/24"}
	b.show(node{"a", "1", cidrs})
	b.show(node{"a", "2", cidrs})
	for _, step := range []struct {
		gone types.UID
		used uint64
	}{{"1", 1}, {"2", 0}} {
		b.gone("a", step.gone)
		if used := b.ranges[0].used; used != step.used {
			t.Errorf("when %s is gone, %d are used", step.gone, used)
		}
	}
}

func TestANodeThatGotItsCIDRFromSomebodyElse(t *testing.T) {
	live := other("a", "1", "10.0.3.0/24")
	r := newRig(t, "10.0.0.0/22", 24)
	r.reconcile("x")
	if err := r.Client.Tracker().Add(live); err != nil {
		t.Fatal(err)
	}
	r.Cache(t, other("a", "1"))
	r.Fail("patch", "nodes", apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), "a", nil))
	if got := r.reconcile("a"); got != "patch nodes; failed" {
		t.Errorf("did %s", got)
	}
	if got := r.reconcile("a"); got != "get nodes" || r.used() != 1 {
		t.Errorf("did %s, %d used", got, r.used())
	}
}

func TestWakes(t *testing.T) {
	labelled := other("a", "1")
	labelled.Labels = map[string]string{"a": "b"}
	type change = runner.Change[corev1.Node]
	for name, tc := range map[string]struct {
		change change
		want   bool
	}{
		"a node registers":    {change{New: other("a", "1")}, true},
		"it is gone":          {change{Old: other("a", "1")}, true},
		"it reports":          {change{Old: other("a", "1"), New: labelled}, false},
		"it gets its CIDR":    {change{Old: other("a", "1"), New: other("a", "1", "10.0.0.0/24")}, true},
		"another of its name": {change{Old: other("a", "1"), New: other("a", "2")}, true},
	} {
		if got := wakes(tc.change); got != tc.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func TestOptions(t *testing.T) {
	for name, tc := range map[string]struct {
		flags Flags
		want  string
	}{
		"usual masks":             {Flags{ClusterCIDR: "10.244.0.0/16"}, "[{10.244.0.0/16 24}] []"},
		"host bits and space":     {Flags{ClusterCIDR: " 10.244.7.9/21 "}, "[{10.244.0.0/21 24}] []"},
		"IPv6":                    {Flags{ClusterCIDR: "fd00::/56"}, "[{fd00::/56 64}] []"},
		"one mask for all":        {Flags{ClusterCIDR: "fd00::/56", Mask: 60}, "[{fd00::/56 60}] []"},
		"a mask for the family":   {Flags{ClusterCIDR: "10.244.0.0/16", MaskIPv4: 26, Mask: 25}, "[{10.244.0.0/16 26}] []"},
		"two families in order":   {Flags{ClusterCIDR: "fd00::/56,10.244.0.0/16", MaskIPv4: 26, MaskIPv6: 60}, "[{fd00::/56 60} {10.244.0.0/16 26}] []"},
		"blocks of one address":   {Flags{ClusterCIDR: "10.244.0.0/30", Mask: 32}, "[{10.244.0.0/30 32}] []"},
		"one block":               {Flags{ClusterCIDR: "10.244.0.0/24"}, "[{10.244.0.0/24 24}] []"},
		"both ranges of Services": {Flags{ClusterCIDR: "10.244.0.0/16", ServiceCIDR: "10.96.0.1/12", SecondaryServiceCIDR: "fd01::/108"}, "[{10.244.0.0/16 24}] [10.96.0.0/12 fd01::/108]"},
		"no CIDR":                 {Flags{ClusterCIDR: "abc"}, "--cluster-cidr=abc: invalid CIDR[0]: <nil> (invalid CIDR address: abc)"},
		"too fine a mask":         {Flags{ClusterCIDR: "10.244.0.0/16", Mask: 33}, "--cluster-cidr=10.244.0.0/16 cannot be cut into blocks with a mask size of 33"},
		"too coarse a mask":       {Flags{ClusterCIDR: "10.244.0.0/16", Mask: 8}, "--cluster-cidr=10.244.0.0/16 cannot be cut into blocks with a mask size of 8"},
		"Services of no CIDR":     {Flags{ClusterCIDR: "10.244.0.0/16", ServiceCIDR: "abc"}, "--service-cluster-ip-range: invalid CIDR address: abc"},
	} {
		o, err := tc.flags.Options()
		got := fmt.Sprint(o.Ranges, o.Services)
		if err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
