package nodelifecycle

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

var errAway = errors.New("the API server is away")

// cacheWorld is nodes that renew their leases, a cache that may stop showing it, and an
// API server that may not answer. A pass comes every five seconds.
type cacheWorld struct {
	now     time.Time
	drift   time.Duration
	cluster *cluster
	nodes   []*corev1.Node
	live    map[string]*coordinationv1.Lease
	shown   map[string]*coordinationv1.Lease // by key, in the cache
	stopped map[string]time.Time
	every   time.Duration
	stalled bool
	away    bool
	// reads counts requests, and asked those of each pass.
	reads  int
	asked  []int
	silent map[string]time.Time // since when it is marked
	log    []string
}

func newCacheWorld(nodes int, brakeShare float32) *cacheWorld {
	w := &cacheWorld{now: noon, every: 10 * time.Second,
		cluster: newCluster(graces{monitor: 50 * time.Second, startup: time.Minute}, defaults, brakeShare),
		live:    map[string]*coordinationv1.Lease{}, shown: map[string]*coordinationv1.Lease{},
		stopped: map[string]time.Time{}, silent: map[string]time.Time{}}
	for i := range nodes {
		name := fmt.Sprintf("n%04d", i)
		w.nodes = append(w.nodes, node(name, ready("True")))
		w.live[name] = renewed(noon.Add(time.Duration(i) * w.every / time.Duration(nodes)).Add(-w.every))
		w.shown[leaseKey(name)] = w.live[name]
	}
	return w
}

func (w *cacheWorld) note(format string, args ...any) {
	w.log = append(w.log, w.now.Format("15:04:05 ")+fmt.Sprintf(format, args...))
}

// renew has the nodes renew what is due now. While the API server is away nobody can.
func (w *cacheWorld) renew() {
	for _, n := range w.nodes {
		lease := w.live[n.Name]
		if _, stopped := w.stopped[n.Name]; !stopped && !w.away && w.now.Sub(lease.Spec.RenewTime.Time) >= w.every {
			w.live[n.Name] = renewed(w.now)
		}
		if !w.stalled && !w.away {
			w.shown[leaseKey(n.Name)] = w.live[n.Name]
		}
	}
}

// pass is what the controller does every monitor period.
func (w *cacheWorld) pass() *findings {
	w.cluster.begin(w.now)
	for _, n := range w.nodes {
		w.cluster.visit(n, w.shown[leaseKey(n.Name)])
	}
	reads := 0
	if q := w.cluster.ask(); q.all || len(q.doubtful) > 0 {
		found := map[string]*coordinationv1.Lease{}
		var failed error
		switch {
		case w.away:
			reads, failed = 1, errAway
		case q.all:
			reads, found = 1, w.live
		default:
			for _, r := range q.doubtful {
				reads++
				found[r.object.Name] = w.live[r.object.Name]
			}
		}
		w.cluster.answer(q, found, failed, w.now)
	}
	w.reads += reads
	w.asked = append(w.asked, reads)
	f := w.cluster.end()
	for i, n := range w.nodes {
		r := w.cluster.nodes[n.Name]
		if _, marked := w.silent[n.Name]; r.silent && !marked {
			w.silent[n.Name] = w.now
			w.note("%s is silent", n.Name)
			w.nodes[i] = unknownNow(n)
		} else if !r.silent && marked && !r.held {
			delete(w.silent, n.Name)
			w.nodes[i] = node(n.Name, ready("True"), beat(w.now))
			w.note("%s is back", n.Name)
		}
	}
	return f
}

// unknownNow is the node with its conditions unknown.
func unknownNow(n *corev1.Node) *corev1.Node {
	marked := n.DeepCopy()
	for i := range marked.Status.Conditions {
		marked.Status.Conditions[i].Status = corev1.ConditionUnknown
	}
	return marked
}

// run lets the time pass, in seconds, and checks what must hold at all times.
func (w *cacheWorld) run(t testing.TB, seconds int) (last *findings) {
	t.Helper()
	for range seconds {
		w.now = w.now.Add(time.Second)
		w.renew()
		if int(w.now.Sub(noon)/time.Second)%5 != 0 {
			continue
		}
		before := maps.Clone(w.silent)
		w.drift += time.Millisecond // a period counts from the end of a pass
		w.now = w.now.Add(w.drift)
		last = w.pass()
		w.now = w.now.Add(-w.drift)
		for name := range w.silent {
			since := w.now.Sub(w.live[name].Spec.RenewTime.Time)
			if _, was := before[name]; !was && since < 50*time.Second {
				t.Fatalf("%s was heard from %s ago and is taken for silent\n%s", name, since, strings.Join(w.log, "\n"))
			}
		}
	}
	return last
}

func (w *cacheWorld) stop(count int) {
	for _, n := range w.nodes[:count] {
		w.stopped[n.Name] = w.now
	}
}

func TestAStalledWatchIsNoOutage(t *testing.T) {
	for name, tc := range map[string]struct {
		nodes, stop, stall int
		want, most         int
	}{
		"a thousand nodes renew behind a watch that stalls for 90 seconds": {1000, 0, 90, 0, 20},
		"ten of a thousand stop while it stalls":                           {1000, 10, 90, 10, 20},
		"three nodes":                                                      {3, 0, 90, 0, 20},
		"one of three":                                                     {3, 1, 90, 1, 20},
		"ten of a thousand stop and the watch is well: each is read once at most": {1000, 10, 0, 10, 10},
		"one of a thousand":    {1000, 1, 0, 1, 1},
		"nine hundred of them": {1000, 900, 0, 900, 10},
		"all of them":          {1000, 1000, 0, 1000, 10},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCacheWorld(tc.nodes, 0)
			w.run(t, 60)
			if w.reads > 0 || len(w.silent) > 0 {
				t.Fatalf("%d reads and %d silent nodes in a cluster that is well", w.reads, len(w.silent))
			}
			w.stop(tc.stop)
			w.stalled = true
			w.run(t, tc.stall)
			w.stalled = false
			w.run(t, 60)
			if len(w.silent) != tc.want || w.reads > tc.most {
				t.Errorf("%d silent nodes after %d reads, want %d after at most %d\n%s", len(w.silent), w.reads, tc.want, tc.most, strings.Join(w.log, "\n"))
			}
			for name, at := range w.silent {
				if after := at.Sub(w.live[name].Spec.RenewTime.Time); after > 56*time.Second {
					t.Errorf("%s was marked %s after its last renewal", name, after)
				}
			}
			if w.run(t, 30); !slices.Equal(w.asked[len(w.asked)-4:], []int{0, 0, 0, 0}) {
				t.Errorf("reads when all is over: %v", w.asked)
			}
		})
	}
}

// That none of many nodes is heard from is looked into long before their grace periods end.
func TestSilenceOfAllIsLookedInto(t *testing.T) {
	for nodes, want := range map[int]int{40: 1, 3: 0} {
		t.Run(fmt.Sprintf("%d nodes", nodes), func(t *testing.T) {
			w := newCacheWorld(nodes, 0)
			w.run(t, 60)
			w.stop(nodes)
			if w.run(t, 30); w.reads != want {
				t.Errorf("%d reads, want %d", w.reads, want)
			}
		})
	}
}

func TestNobodyIsMarkedWhileNothingCanBeRead(t *testing.T) {
	w := newCacheWorld(20, 0)
	w.run(t, 60)
	w.stop(2)
	w.away = true
	f := w.run(t, 100)
	if len(w.silent) > 0 || f.unproven != 20 || f.unread == nil {
		t.Errorf("%d silent, %d unproven (%v)", len(w.silent), f.unproven, f.unread)
	}
	if w.reads > 20 {
		t.Errorf("%d reads, want one a pass at most", w.reads)
	}
	// The time in which nobody could be heard counts for no grace period.
	w.away = false
	w.run(t, 60)
	if len(w.silent) != 2 {
		t.Errorf("%d nodes are silent when the API server is back, want 2\n%s", len(w.silent), strings.Join(w.log, "\n"))
	}
}

// A paused controller makes no passes, and one without an API server may not either. That all
// have stopped is to be seen all the same.
func TestATimeWithoutPassesCountsForNobody(t *testing.T) {
	for name, tc := range map[string]struct {
		gaps   []time.Duration // between passes; nobody is heard from
		silent int
	}{
		"one that is longer than the grace period": {[]time.Duration{5 * time.Minute}, 0},
		"one that is not":                          {[]time.Duration{49 * time.Second, 10 * time.Second}, 20},
		"the rest of the grace period is left":     {[]time.Duration{5 * time.Minute, 30 * time.Second}, 0},
		"and is over in its time":                  {[]time.Duration{5 * time.Minute, 45 * time.Second, 10 * time.Second}, 20},
		"when each takes so long, it counts":       {[]time.Duration{5 * time.Minute, 5 * time.Minute}, 20},
		"two with a pass in time between":          {[]time.Duration{5 * time.Minute, 5 * time.Second, 5 * time.Minute}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCacheWorld(20, 0)
			w.run(t, 60)
			for _, gap := range tc.gaps {
				w.now = w.now.Add(gap)
				w.pass()
			}
			if len(w.silent) != tc.silent {
				t.Errorf("%d are silent, want %d\n%s", len(w.silent), tc.silent, strings.Join(w.log, "\n"))
			}
		})
	}
}

// While others are heard from, reads that fail put a mark off and no more.
func TestReadsThatFailPutAMarkOff(t *testing.T) {
	w := newCacheWorld(20, 0)
	w.run(t, 60)
	w.stop(1)
	w.run(t, 40)
	refuse := true
	read := func() {
		w.cluster.begin(w.now)
		for _, n := range w.nodes {
			w.cluster.visit(n, w.shown[leaseKey(n.Name)])
		}
		q := w.cluster.ask()
		if refuse {
			w.cluster.answer(q, nil, errAway, w.now)
		} else {
			w.cluster.answer(q, w.live, nil, w.now)
		}
		w.cluster.end()
	}
	step := func() {
		for range 5 {
			w.now = w.now.Add(time.Second)
			w.renew()
		}
		read()
	}
	for range 4 {
		step()
		if w.cluster.nodes["n0000"].silent {
			t.Fatal("a node is marked whose lease could not be read")
		}
	}
	refuse = false
	if doubt := w.cluster.found.unproven; doubt != 1 {
		t.Errorf("%d nodes are in doubt, want 1", doubt)
	}
	if step(); !w.cluster.nodes["n0000"].silent {
		t.Error("the node is not silent in the pass in which its lease could be read")
	}
}

func TestTheBrake(t *testing.T) {
	for name, tc := range map[string]struct {
		share   float32
		stop    int
		trouble bool
		want    int // silent nodes at once
		later   int // when there was no trouble for a grace period
	}{
		"off":                             {0, 60, true, 60, 60},
		"more than the share, in trouble": {0.3, 60, true, 0, 60},
		"the share, in trouble":           {0.6, 60, true, 60, 60},
		"more than the share, no trouble": {0.3, 60, false, 60, 60},
	} {
		t.Run(name, func(t *testing.T) {
			w := newCacheWorld(100, tc.share)
			w.run(t, 60)
			w.stop(tc.stop)
			var events []string
			for i := range 14 {
				if tc.trouble && i == 8 {
					w.cluster.view.trouble = w.now // a write of the controller has failed
				}
				f := w.run(t, 5)
				if f.brakeApplied || f.brakeReleased {
					events = append(events, fmt.Sprintf("%v %v %d %d", f.brakeApplied, f.brakeReleased, f.fell, f.held))
				}
			}
			if len(w.silent) != tc.want || tc.want == 0 && (len(events) != 1 || !w.cluster.braked) {
				t.Errorf("%d nodes are silent, want %d; brake: %q", len(w.silent), tc.want, events)
			}
			if through := w.cluster.evict(w.now).through; w.cluster.braked && len(through) > 0 {
				t.Errorf("tainted behind the brake: %v", through)
			}
			if w.run(t, 50); len(w.silent) != tc.later || w.cluster.braked {
				t.Errorf("%d nodes are silent after a grace period without trouble, want %d", len(w.silent), tc.later)
			}
		})
	}
}

// A node may have been let through, and its taint be refused, when the brake is applied.
func TestTheBrakeTakesTurnsBack(t *testing.T) {
	w := newCacheWorld(100, 0.3)
	last := w.nodes[99]
	w.nodes[99] = node(last.Name, ready("False"))
	w.run(t, 60)
	equal(t, "let through", w.cluster.evict(w.now).through, []string{last.Name})
	if f := w.run(t, 5); !slices.Equal(f.wake, []string{last.Name}) {
		t.Fatalf("woken: %v, want the node until its taint is written", f.wake)
	}
	w.stop(60)
	w.run(t, 40)
	w.cluster.view.trouble = w.now
	if f := w.run(t, 30); !w.cluster.braked || len(f.wake) > 0 || w.cluster.nodes[last.Name].order != noOrder {
		t.Errorf("brake %v, woken: %v, order %d", w.cluster.braked, f.wake, w.cluster.nodes[last.Name].order)
	}
	if w.run(t, 50); w.cluster.braked {
		t.Fatal("the brake is still on")
	}
	if through := w.cluster.evict(w.now).through; len(through) != 1 {
		t.Errorf("let through when the brake is off: %v", through)
	}
}

func TestWhatAppliesTheBrake(t *testing.T) {
	kinds := map[rune]memory{
		'.': {status: "True"},
		'f': {heartbeat: heartbeat{proven: true}, status: "True", since: noon.Add(-time.Second)},        // fell silent
		'g': {heartbeat: heartbeat{proven: true}, status: "True", since: noon.Add(-50 * time.Second)},   // a grace period ago
		'l': {heartbeat: heartbeat{proven: true}, status: "True", since: noon.Add(-50*time.Second - 1)}, // longer ago
		'b': {status: "True", since: noon.Add(-time.Second)},                                            // fell silent and is back
		'm': {heartbeat: heartbeat{proven: true}, status: "Unknown", since: noon.Add(-time.Second)},     // is marked already
	}
	for name, tc := range map[string]struct {
		nodes   string
		trouble time.Duration // ago
		want    bool
	}{
		"more than the share":        {"ffffff....", 0, true},
		"the share":                  {"fffff.....", 0, false},
		"within a grace period":      {"gggggg....", 0, true},
		"one longer ago":             {"fffffl....", 0, false},
		"one is back":                {"fffffb....", 0, false},
		"one is marked":              {"fffffm....", 0, true},
		"all are marked":             {"mmmmmm....", 0, false},
		"trouble a grace period ago": {"ffffff....", 50 * time.Second, true},
		"trouble longer ago":         {"ffffff....", 50*time.Second + 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(graces{monitor: 50 * time.Second, startup: time.Minute}, defaults, 0.5)
			c.now, c.view.trouble = noon, noon.Add(-tc.trouble)
			for _, kind := range tc.nodes {
				r := kinds[kind]
				r.object = node("a")
				c.visited = append(c.visited, &r)
			}
			if c.hold(); c.braked != tc.want {
				t.Errorf("braked: %v, as %d fell silent and %d are held", c.braked, c.found.fell, c.found.held)
			}
		})
	}
}

func TestWhoIsToldGoesPastTheBrake(t *testing.T) {
	w := newCacheWorld(100, 0.3)
	w.run(t, 60)
	w.stop(60)
	w.run(t, 40)
	w.cluster.view.trouble = w.now
	w.run(t, 20)
	if len(w.silent) != 0 || !w.cluster.braked {
		t.Fatalf("%d silent nodes, brake %v", len(w.silent), w.cluster.braked)
	}
	for i := range 10 {
		w.nodes[i] = w.nodes[i].DeepCopy()
		w.nodes[i].Annotations = map[string]string{annotationLost: "true"}
		w.nodes[20+i] = w.nodes[20+i].DeepCopy()
		w.nodes[20+i].Annotations = map[string]string{annotationLost: "no"}
	}
	if w.run(t, 5); len(w.silent) != 10 || !w.cluster.braked {
		t.Errorf("%d silent nodes, brake %v", len(w.silent), w.cluster.braked)
	}
	if through := w.cluster.evict(w.now.Add(time.Hour)).through; len(through) == 0 || !w.cluster.braked {
		t.Error("no node that is said to be lost is tainted")
	} else {
		for _, name := range through {
			if !w.cluster.nodes[name].lost() {
				t.Errorf("%s is tainted while the brake is on", name)
			}
		}
	}
	// The others come back.
	clear(w.stopped)
	if f := w.run(t, 15); len(w.silent) != 0 || !w.cluster.braked && f.held != 0 {
		t.Errorf("%d silent nodes, %d held", len(w.silent), f.held)
	}
}

// In any order of stalls, refusals and stops nobody is taken for silent who was heard
// from, reads stay few, and in the end all is as it is.
func TestWorldOfABlindManager(t *testing.T) {
	for seed := range testworld.Seeds(t, 150) {
		r := rand.New(rand.NewPCG(seed, 11))
		w := newCacheWorld(2+r.IntN(40), []float32{0, 0, 0.2}[r.IntN(3)])
		for range 60 {
			switch r.IntN(8) {
			case 0:
				w.stalled = !w.stalled
				w.note("stalled: %v", w.stalled)
			case 1:
				w.away = !w.away
				w.note("away: %v", w.away)
			case 2:
				clear(w.stopped)
				w.note("all run")
			case 3:
				w.stop(r.IntN(len(w.nodes)))
				w.note("%d have stopped", len(w.stopped))
			}
			before := w.reads
			passes := 1 + r.IntN(4)
			w.run(t, 5*passes)
			if reads := w.reads - before; reads > fewLeases*passes {
				t.Fatalf("seed %d: %d reads in %d passes\n%s", seed, reads, passes, strings.Join(w.log, "\n"))
			}
		}
		w.stalled, w.away = false, false
		w.note("all is well")
		w.run(t, 200)
		for _, n := range w.nodes {
			_, silent := w.silent[n.Name]
			if _, stopped := w.stopped[n.Name]; silent != stopped {
				t.Fatalf("seed %d: %s has stopped: %v, silent: %v\n%s", seed, n.Name, stopped, silent, strings.Join(w.log, "\n"))
			}
		}
		if w.cluster.braked || w.asked[len(w.asked)-1] != 0 {
			t.Fatalf("seed %d: brake %v, reads %v\n%s", seed, w.cluster.braked, w.asked[len(w.asked)-5:], strings.Join(w.log, "\n"))
		}
	}
}
