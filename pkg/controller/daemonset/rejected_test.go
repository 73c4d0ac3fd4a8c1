package daemonset

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/testworld"
)

// refused is a pod that was made so long ago and that its node rejected.
func refused(age time.Duration) podOption {
	return func(p *corev1.Pod) {
		unready(p)
		p.CreationTimestamp = ago(age)
		p.Status.Phase, p.Status.Reason = corev1.PodFailed, "OutOfcpu"
	}
}

// following is a pod that carries since when the node rejects pods.
func following(age time.Duration) podOption {
	return func(p *corev1.Pod) { rejections.MarkSince(p, noon.Add(-age)) }
}

func waiting(p *corev1.Pod) {
	unready(p)
	p.CreationTimestamp = ago(0)
	p.Status.Phase = corev1.PodPending
}

// refusing is a node as it is observed while so many others reject pods.
func refusing(name string, node *corev1.Node, others int, all ...*corev1.Pod) *view {
	n := seen(name, node, all...)
	n.retry = retryOf(all, labels.SelectorFromSet(labels.Set{"app": "web"}))
	n.retry.among(others + 1)
	return n
}

func TestRejectedPods(t *testing.T) {
	const s = time.Second
	for name, tc := range map[string]struct {
		ds       *appsv1.DaemonSet
		node     *corev1.Node
		pods     []*corev1.Pod
		troubled int
		want     string
		wait     time.Duration // until it is due
		look     time.Duration
		is       bool // in trouble
		rolls    string
	}{
		"the first is followed at once":                  {pods: some(pod("p", refused(s))), want: "create since 1s", is: true},
		"and goes when the next is there":                {pods: some(pod("p", refused(s)), pod("q", waiting, following(s))), want: "failed p", is: true},
		"also when that was rejected":                    {pods: some(pod("p", refused(s)), pod("q", refused(0), following(s))), want: "failed p", wait: 10 * s, look: 10 * s, is: true},
		"or failed in another way":                       {pods: some(pod("p", refused(s)), pod("q", aged(0), phase(corev1.PodFailed), following(s))), want: "failed p, failed q", is: true},
		"the second waits":                               {pods: some(pod("p", refused(4*s), following(5*s))), wait: 6 * s, look: 6 * s, is: true},
		"until it is due":                                {pods: some(pod("p", refused(10*s), following(15*s))), want: "create since 15s", is: true},
		"the third waits for longer":                     {pods: some(pod("p", refused(4*s), following(15*s))), wait: 16 * s, look: 16 * s, is: true},
		"with many nodes in trouble the first waits too": {pods: some(pod("p", refused(0))), troubled: 63, wait: 300 * s, look: 300 * s, is: true},
		"and is looked at now and then":                  {pods: some(pod("p", refused(0))), troubled: 127, wait: 600 * s, look: 300 * s, is: true},
		"nothing of it where none may be made":           {node: keeps1, pods: some(pod("p", refused(0))), want: "failed p"},
		"or where none may stay":                         {node: evicts, pods: some(pod("p", refused(0))), want: "remove p"},
		"one that waits is in trouble":                   {pods: some(pod("p", waiting, following(s))), is: true, rolls: "down"},
		"until it runs":                                  {pods: some(pod("p", following(s)))},
		"a pod that ran and failed goes at once":         {pods: some(pod("p", phase(corev1.PodFailed), following(s))), want: "failed p"},
		"one of another template goes without a record":  {pods: some(pod("p", refused(4*s), following(5*s), old)), wait: 6 * s, look: 6 * s, is: true, rolls: "down, without p"},
		"nor does it wait where none is rolled out":      {ds: daemon(onDelete), pods: some(pod("p", refused(4*s), following(5*s), old)), want: "create", is: true},
		"one of this template does there too":            {ds: daemon(onDelete), pods: some(pod("p", refused(4*s), following(5*s))), wait: 6 * s, look: 6 * s, is: true},
		"no second pod is made beside one":               {pods: some(pod("p", refused(time.Hour), old), pod("q", aged(2*time.Hour), old)), want: "failed p", is: true},
		"not beside one that goes":                       {pods: some(pod("p", refused(s)), pod("q", leaving, old)), is: true},
		"one that is held when it goes is not followed":  {pods: some(pod("p", refused(time.Hour), leaving), pod("q", aged(2*time.Hour), old)), rolls: "waits"},
		"nor is one that does not match any more":        {pods: some(pod("p", refused(time.Hour), stray), pod("q", aged(2*time.Hour), old)), want: "release p", rolls: "waits"},
		"with a surge the old one stays":                 {ds: daemon(surging1), pods: some(pod("p", refused(4*s), following(5*s)), pod("q", old)), wait: 6 * s, look: 6 * s, is: true, rolls: "joins"},
		"with a surge it is followed when due":           {ds: daemon(surging1), pods: some(pod("p", refused(s)), pod("q", old)), want: "create since 1s", is: true, rolls: "joins"},
		"with a surge there are never three":             {ds: daemon(surging1), pods: some(pod("p", refused(s), old), pod("q", old), pod("r", waiting, old)), want: "remove r", is: true, rolls: "unsettled"},
		"with a surge an outdated one goes":              {ds: daemon(surging1), pods: some(pod("p", refused(s), old), pod("q", waiting)), want: "failed p", is: true},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.ds == nil {
				tc.ds = daemon()
			}
			if tc.node == nil {
				tc.node = fits
			}
			v := asked(tc.ds).needsOf(refusing("a", tc.node, tc.troubled, tc.pods...))
			got := v.does()
			if !v.since.IsZero() {
				got = strings.ReplaceAll(got, "create", fmt.Sprint("create since ", noon.Sub(v.since)))
			}
			parts := strings.Split(got, ", ")
			slices.Sort(parts)
			check(t, strings.Join(parts, ", "), tc.want)
			after := func(at time.Time) time.Duration {
				if at.IsZero() {
					return 0
				}
				return at.Sub(noon)
			}
			check(t, after(v.due), tc.wait)
			check(t, after(v.look), tc.look)
			check(t, v.troubled, tc.is)
			if tc.rolls != "" {
				check(t, v.rolls(), tc.rolls)
			}
		})
	}
}

func TestAllNodesThatAreLookedAtCount(t *testing.T) {
	o := &observed{selector: labels.SelectorFromSet(labels.Set{"app": "web"})}
	for i := range 32 {
		name := fmt.Sprint("n", i)
		o.views = append(o.views, *seen(name, node(name), pod("p"+name, on(name), refused(0))))
		o.waiting = append(o.waiting, candidate{view: seen("w"+name, node("w"+name), pod("q"+name, on("w"+name), refused(0)))})
	}
	o.backOff()
	check(t, o.views[0].retry.due, noon.Add(300*time.Second))
	check(t, o.waiting[0].retry.due, noon.Add(300*time.Second))
}

func TestTheConditionTellsOfTheNodeThatIsTriedNext(t *testing.T) {
	none, held := setback{}, setback{node: "m", reason: "OutOfcpu", due: noon.Add(time.Minute)}
	for name, tc := range map[string]struct {
		before setback
		node   string
		due    time.Duration
		want   string
	}{
		"the first that is held":           {none, "a", time.Minute, "a in 1m0s"},
		"one that is tried sooner":         {held, "z", time.Second, "z in 1s"},
		"one that is tried later":          {held, "a", time.Hour, "m in 1m0s"},
		"of two at once the first by name": {held, "a", time.Minute, "a in 1m0s"},
		"and not the last":                 {held, "z", time.Minute, "m in 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.before.sooner(tc.node, &nodeState{due: noon.Add(tc.due), why: "OutOfmemory"})
			check(t, fmt.Sprintf("%s in %v", got.node, got.due.Sub(noon)), tc.want)
			check(t, got.reason == "OutOfmemory", got.node == tc.node)
		})
	}
	check(t, held.sooner("a", &nodeState{}) == held, true)
}

func TestTheConditionTellsOfHeldPods(t *testing.T) {
	b := newBook()
	q := asked(daemon())
	has := func(conditions []appsv1.DaemonSetCondition) string {
		var all []string
		for _, c := range conditions {
			all = append(all, string(c.Type)+": "+c.Message)
		}
		return strings.Join(all, "; ")
	}
	consider := func(name string, all ...*corev1.Pod) {
		v := q.needsOf(refusing(name, node(name), 0, all...))
		b.set(entry{name, v.nodeState, v.acts()}, b.marks)
	}
	var now []appsv1.DaemonSetCondition
	tell := func() string {
		o := b.besides(nil)
		o.setback.troubled = o.sums.troubled
		now = o.setback.condition(now, noon)
		return has(now)
	}
	consider("a", pod("p", refused(0)))
	check(t, tell(), "") // the first replacement is immediate
	const text = "ReplacementBackoff: nodes reject the pods (%d now; node %s with reason OutOfcpu); the next pod is created at 2026-05-04T12:00:%02dZ"
	consider("a", pod("p", refused(4*time.Second), following(5*time.Second)))
	check(t, tell(), fmt.Sprintf(text, 1, "a", 6))
	consider("b", pod("q", refused(9*time.Second), following(9*time.Second)))
	check(t, tell(), fmt.Sprintf(text, 2, "b", 1))
	consider("b", pod("q", waiting, following(9*time.Second)))
	check(t, tell(), fmt.Sprintf(text, 2, "a", 6))
	consider("a", pod("p", waiting, following(5*time.Second)))
	check(t, tell(), fmt.Sprintf(text, 2, "a", 6)) // it stays while tries are made
	consider("a", pod("p", following(5*time.Second)))
	check(t, tell() != "", true)
	consider("b", pod("q", following(5*time.Second)))
	check(t, tell(), "")
}

// TestFiveMinutesOfRejections has all nodes reject their pods for five minutes,
// with a controller that is killed and whose caches lag.
func TestFiveMinutesOfRejections(t *testing.T) {
	const nodes = 8
	for name, ds := range map[string]func() *appsv1.DaemonSet{
		"plain":        func() *appsv1.DaemonSet { return daemon() },
		"with a surge": func() *appsv1.DaemonSet { return daemon(surging1) },
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range testworld.Seeds(t, 60) {
				w := newWorld(t, seed, ds(), nodes)
				w.patient, w.rig.patient = true, true
				w.rejects = func() bool { return w.rig.Clock.Since(noon) < 5*time.Minute }
				w.Add(w.times("crash", 10, w.crash))
				made := 0
				most := 1
				if surges(w.server.ds) {
					most = 2
				}
				w.Always(w.crowded(most), func() string {
					if w.rejects() {
						made = w.Made
					}
					return ""
				})
				w.end(seed)
				if made < 2*nodes || made > 90 {
					t.Fatalf("seed %d: %d pods were made\n%s", seed, made, w.Transcript())
				}
				if seed == 0 {
					t.Logf("%d pods", made)
				}
				if c := w.server.ds.Status.Conditions; len(c) > 0 {
					t.Fatalf("seed %d: %v is left\n%s", seed, c, w.Transcript())
				}
			}
		})
	}
}
