package integration

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/kube-kcm/kube-controller-manager/test/harness"
)

const (
	stoppedNodes = 10
	// markedWithin is how much later than its grace period a node may be marked.
	markedWithin = 5 * time.Second
	// mostReads is how many reads of leases the stall may cost.
	mostReads = 20
)

// outageTimes are how many nodes there are, how often each renews its lease, how long it may
// be silent, how often the manager looks, and how long the watch of leases stands still.
type outageTimes struct {
	nodes                       int
	every, grace, period, stall time.Duration
}

// timesOfOutage are much shorter than a cluster's defaults, for fewer nodes;
// OUTAGE_TIMES=full takes the defaults and a thousand nodes.
func timesOfOutage() outageTimes {
	if os.Getenv("OUTAGE_TIMES") == "full" {
		return outageTimes{nodes: 1000, every: 10 * time.Second, grace: 50 * time.Second, period: 5 * time.Second, stall: 90 * time.Second}
	}
	return outageTimes{nodes: 300, every: 4 * time.Second, grace: 8 * time.Second, period: 800 * time.Millisecond, stall: 15 * time.Second}
}

// nodeFleet is nodes that are objects only, whose leases are renewed.
type nodeFleet struct {
	client kubernetes.Interface
	outageTimes

	mu      sync.Mutex
	stopped map[string]time.Time // with the last renewal
	renewed map[string]time.Time
	marked  map[string]time.Time
	tainted map[string]bool
}

func fleetNode(i int) string { return fmt.Sprintf("node-%04d", i) }

// TestAStalledWatchOfLeasesIsNoOutage stalls the watch that shows heartbeats while
// hundreds of nodes send them: none of them is marked, and it costs few reads. Those that
// stop in that time are marked as ever.
func TestAStalledWatchOfLeasesIsNoOutage(t *testing.T) {
	cp := harness.StartControlPlane(t, harness.ControlPlaneOptions{})
	unlimited := rest.CopyConfig(cp.Admin)
	unlimited.QPS = -1
	client, err := kubernetes.NewForConfig(unlimited)
	if err != nil {
		t.Fatal(err)
	}
	f := &nodeFleet{client: client, outageTimes: timesOfOutage(), stopped: map[string]time.Time{}, renewed: map[string]time.Time{}, marked: map[string]time.Time{}, tainted: map[string]bool{}}
	f.create(t)
	f.watch(t)
	go f.live(t.Context())

	proxy := cp.StartProxy(t)
	var reads atomic.Int32
	proxy.Disturb(func(r *http.Request) harness.Fault {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/namespaces/kube-node-lease/leases") {
			reads.Add(1)
		}
		return harness.Fault{}
	})
	cp.StartManager(t, harness.ManagerOptions{Binary: harness.BuiltBinary(t), Kubeconfig: proxy.Kubeconfig, Args: []string{
		"--controllers=node-lifecycle-controller", "--kube-api-qps=1000", "--kube-api-burst=2000",
		"--node-monitor-period=" + f.period.String(), "--node-monitor-grace-period=" + f.grace.String()}})
	harness.Eventually(t, patient, func(context.Context) error { return f.untainted() })

	if n := reads.Load(); n > 0 {
		t.Errorf("%d reads of leases while all was well", n)
	}
	proxy.Lag([]string{"leases.coordination.k8s.io"}, time.Hour)
	for i := range stoppedNodes {
		f.stop(fleetNode(i))
	}
	stalled := time.NewTimer(f.stall)
	<-stalled.C
	if n := reads.Load(); n == 0 || n > mostReads {
		t.Errorf("%d reads of leases in %s, want at most %d", n, f.stall, mostReads)
	}
	f.check(t)
	proxy.Disturb(nil)
}

// create makes the nodes and their leases.
func (f *nodeFleet) create(t *testing.T) {
	t.Helper()
	f.each(func(name string) {
		now := metav1.Now()
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
			{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: now, LastTransitionTime: now}}}}
		if _, err := f.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Errorf("create node %s: %v", name, err)
		}
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
			t.Errorf("create lease %s: %v", name, err)
		}
	})
}

// each calls do for all nodes, some at a time.
func (f *nodeFleet) each(do func(name string)) {
	var all sync.WaitGroup
	names := make(chan string)
	for range 16 {
		all.Go(func() {
			for name := range names {
				do(name)
			}
		})
	}
	for i := range f.nodes {
		names <- fleetNode(i)
	}
	close(names)
	all.Wait()
}

// live renews the leases, evenly spread over time. A late tick renews all that are due.
func (f *nodeFleet) live(ctx context.Context) {
	each := f.every / time.Duration(f.nodes)
	tick := time.NewTicker(each)
	defer tick.Stop()
	slots := make(chan struct{}, 64)
	next := 0
	for began := time.Now(); ; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for due := int(time.Since(began) / each); next < due; next++ {
			name := fleetNode(next % f.nodes)
			if f.isStopped(name) {
				continue
			}
			slots <- struct{}{}
			go func() {
				defer func() { <-slots }()
				f.renew(ctx, name)
			}()
		}
	}
}

func (f *nodeFleet) renew(ctx context.Context, name string) {
	now := time.Now()
	patch := fmt.Appendf(nil, `{"spec":{"renewTime":%q}}`, now.UTC().Format(metav1.RFC3339Micro))
	if _, err := f.client.CoordinationV1().Leases(corev1.NamespaceNodeLease).Patch(ctx, name, "application/merge-patch+json", patch, metav1.PatchOptions{}); err != nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.renewed[name] = time.Now()
}

func (f *nodeFleet) isStopped(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	_, stopped := f.stopped[name]
	return stopped
}

func (f *nodeFleet) stop(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped[name] = time.Now()
}

// watch notes which nodes are tainted, and which were ever marked.
func (f *nodeFleet) watch(t *testing.T) {
	t.Helper()
	factory := informers.NewSharedInformerFactory(f.client, 0)
	note := func(object any) {
		node := object.(*corev1.Node)
		f.mu.Lock()
		defer f.mu.Unlock()
		f.tainted[node.Name] = len(node.Spec.Taints) > 0
		if _, already := f.marked[node.Name]; !already && node.Status.Conditions[0].Status != corev1.ConditionTrue {
			f.marked[node.Name] = time.Now()
		}
	}
	if _, err := factory.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: note, UpdateFunc: func(_, after any) { note(after) }}); err != nil {
		t.Fatal(err)
	}
	factory.StartWithContext(t.Context())
	factory.WaitForCacheSync(t.Context().Done())
}

// untainted is nil when the manager has taken off the taints of new nodes.
func (f *nodeFleet) untainted() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	left := 0
	for _, tainted := range f.tainted {
		if tainted {
			left++
		}
	}
	if left > 0 || len(f.tainted) < f.nodes {
		return fmt.Errorf("%d of %d nodes are tainted", left, len(f.tainted))
	}
	return nil
}

// check fails for nodes that were marked and run, and for those that have stopped and
// were marked late.
func (f *nodeFleet) check(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.nodes {
		name := fleetNode(i)
		at, marked := f.marked[name]
		_, stopped := f.stopped[name]
		if marked != stopped || f.tainted[name] != stopped {
			t.Errorf("%s: stopped %v, marked %v, tainted %v", name, stopped, marked, f.tainted[name])
			continue
		}
		if late := at.Sub(f.renewed[name].Add(f.grace)); stopped && late > markedWithin {
			t.Errorf("%s was marked %s after its grace period", name, late)
		}
	}
}
