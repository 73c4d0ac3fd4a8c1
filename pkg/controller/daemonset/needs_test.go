package daemonset

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// asked is what nodes are considered by for this set.
func asked(ds *appsv1.DaemonSet) *question {
	return &question{
		placement: placementOf(&ds.Spec.Template, false), selector: labels.SelectorFromSet(ds.Spec.Selector.MatchLabels),
		minReady: ds.Spec.MinReadySeconds, hash: "new", generation: "", rolls: rolls(ds), surges: surges(ds), now: noon,
	}
}

// seen is a node as it is observed while no failed pod has to wait.
func seen(name string, node *corev1.Node, all ...*corev1.Pod) *view {
	return &view{name: name, node: node, pods: all}
}

// does prints what a node needs, whatever the rollout says.
func (v *needs) does() string {
	var all []string
	if v.create {
		all = append(all, "create")
	}
	for _, r := range v.remove {
		all = append(all, map[reason]string{unwanted: "remove ", failed: "failed ", succeeded: "ended "}[r.why]+r.pod.Name)
	}
	for _, pod := range v.release {
		all = append(all, "release "+pod.Name)
	}
	return strings.Join(all, ", ")
}

// rolls prints what what a node needs means for the rollout.
func (v *needs) rolls() string {
	all := []string{map[rollout]string{
		rolloutDown: "down", rolloutDone: "done", rolloutWaiting: "waits", rolloutLeaving: "leaves", rolloutJoining: "joins", rolloutUnsettled: "unsettled",
	}[v.rollout]}
	if v.step.create {
		all = append(all, "new")
	}
	if v.step.remove != nil {
		all = append(all, "without "+v.step.remove.Name)
	}
	return strings.TrimPrefix(strings.Join(all, ", "), ", ")
}

func (v *needs) counts() string {
	return fmt.Sprintf("runs %v, here %v, ready %v, available %v, updated %v",
		v.fit == fitOpen, v.health != healthNone, v.health >= healthReady, v.health >= healthAvailable, v.updated)
}

func some(all ...*corev1.Pod) []*corev1.Pod { return all }

var (
	fits     = node("a")
	keeps1   = node("a", tainted("x", corev1.TaintEffectNoSchedule))
	evicts   = node("a", tainted("x", corev1.TaintEffectNoExecute))
	noNode   *corev1.Node
	surging1 = posts("1", "0")
)

func TestWhatANodeNeeds(t *testing.T) {
	for name, tc := range map[string]struct {
		ds   *appsv1.DaemonSet
		node *corev1.Node
		pods []*corev1.Pod
		want string
	}{
		"a pod":                                          {daemon(), fits, nil, "create"},
		"nothing more than one":                          {daemon(), fits, some(pod("p")), ""},
		"nothing while one is on its way":                {daemon(), fits, some(pod("p", madeFor("a"))), ""},
		"to wait for one that goes":                      {daemon(), fits, some(pod("p", leaving)), ""},
		"not to wait for one that goes, with a surge":    {daemon(surging1), fits, some(pod("p", leaving)), "create"},
		"not to wait for one that ended and is held":     {daemon(), fits, some(pod("p", leaving, phase(corev1.PodFailed))), "create"},
		"nothing where none may be made":                 {daemon(), keeps1, nil, ""},
		"to keep one where none may be made":             {daemon(), keeps1, some(pod("p")), ""},
		"to lose one where none may stay":                {daemon(), evicts, some(pod("p"), pod("q", leaving)), "remove p"},
		"to lose one on its way where none may stay":     {daemon(), evicts, some(pod("p", madeFor("a"))), "remove p"},
		"to replace one that failed":                     {daemon(), fits, some(pod("p", phase(corev1.PodFailed))), "failed p"},
		"to replace one that ended":                      {daemon(), fits, some(pod("p", phase(corev1.PodSucceeded))), "ended p"},
		"a new one at once when one failed, and surges":  {daemon(surging1), fits, some(pod("p", phase(corev1.PodFailed))), "create, failed p"},
		"one failure at a time":                          {daemon(), fits, some(pod("p", phase(corev1.PodFailed)), pod("q", phase(corev1.PodFailed))), "failed p"},
		"to keep the oldest":                             {daemon(), fits, some(pod("p", aged(time.Minute)), pod("q", aged(time.Hour)), pod("r")), "remove r, remove p"},
		"to keep the one that has its node":              {daemon(), fits, some(pod("p", madeFor("a"), aged(time.Hour)), pod("q", aged(time.Minute))), "remove p"},
		"nothing more once it is gone":                   {daemon(), noNode, some(pod("p")), ""},
		"no pod on its way once it is gone":              {daemon(), noNode, some(pod("p"), pod("q", madeFor("a")), pod("r", madeFor("a"), leaving)), "remove q"},
		"not those that do not match any more":           {daemon(), fits, some(pod("p", stray)), "create, release p"},
		"both while the new one is not ready":            {daemon(surging1), fits, some(pod("p", old), pod("q", unready)), ""},
		"only the new one once it is ready":              {daemon(surging1), fits, some(pod("p", old), pod("q")), "remove p"},
		"only the new one when the old one is not ready": {daemon(surging1), fits, some(pod("p", old, unready), pod("q", unready)), "remove p"},
		"one of each kind": {daemon(surging1), fits, some(pod("p", old), pod("p2", old, aged(time.Minute)), pod("q", unready), pod("q2", unready, aged(time.Minute))),
			"remove q2, remove p2"},
		"one of each kind, without a surge": {daemon(), fits, some(pod("p", old, aged(2*time.Hour)), pod("q")), "remove q"},
	} {
		t.Run(name, func(t *testing.T) {
			v := asked(tc.ds).needsOf(seen("a", tc.node, tc.pods...))
			got := strings.Split(v.does(), ", ")
			check(t, strings.Join(sortedWords(got), ", "), strings.Join(sortedWords(strings.Split(tc.want, ", ")), ", "))
			check(t, v.acts() || v.does() == "", true)
		})
	}
}

func TestAFailedPodWaitsForItsTurn(t *testing.T) {
	for name, ds := range map[string]*appsv1.DaemonSet{"plain": daemon(), "with a surge": daemon(surging1)} {
		t.Run(name, func(t *testing.T) {
			q := asked(ds)
			q.rolls = false
			n := seen("a", fits, pod("p", phase(corev1.PodFailed), unready))
			n.blocked = 8 * time.Second
			v := q.needsOf(n)
			check(t, v.does(), "")
			check(t, v.acts(), false)
			check(t, v.look, noon.Add(8*time.Second))
		})
	}
}

func TestWhatIsCountedOfANode(t *testing.T) {
	patient := minReady(30)
	for name, tc := range map[string]struct {
		ds   *appsv1.DaemonSet
		node *corev1.Node
		pods []*corev1.Pod
		want string
		look time.Duration
	}{
		"none":                    {ds: daemon(), node: fits, want: "runs true, here false, ready false, available false, updated false"},
		"one that works":          {ds: daemon(), node: fits, pods: some(pod("p")), want: "runs true, here true, ready true, available true, updated true"},
		"one of another revision": {ds: daemon(), node: fits, pods: some(pod("p", old)), want: "runs true, here true, ready true, available true, updated false"},
		"one that is not ready":   {ds: daemon(), node: fits, pods: some(pod("p", unready)), want: "runs true, here true, ready false, available false, updated true"},
		"one that is ready, but not for long": {ds: daemon(patient), node: fits, pods: some(pod("p", readyFor(10*time.Second))),
			want: "runs true, here true, ready true, available false, updated true", look: 20 * time.Second},
		"one that has ended and goes": {ds: daemon(), node: fits, pods: some(pod("p", leaving, phase(corev1.PodSucceeded))),
			want: "runs true, here false, ready false, available false, updated false"},
		"the oldest of several": {ds: daemon(), node: fits, pods: some(pod("p", unready, aged(time.Minute)), pod("q", old)),
			want: "runs true, here true, ready true, available true, updated false"},
		"one out of place": {ds: daemon(), node: keeps1, pods: some(pod("p")), want: "runs false, here true, ready true, available true, updated true"},
	} {
		t.Run(name, func(t *testing.T) {
			v := asked(tc.ds).needsOf(seen("a", tc.node, tc.pods...))
			check(t, v.counts(), tc.want)
			want := time.Time{}
			if tc.look > 0 {
				want = noon.Add(tc.look)
			}
			check(t, v.look, want)
		})
	}
}

func TestAPodFromBeforeRevisionsCountsAsUpdated(t *testing.T) {
	q := asked(daemon())
	q.generation = "3"
	p := pod("p", old)
	p.Labels[generationLabel] = "3"
	check(t, q.isNew(p), true)
	p.Labels[generationLabel] = "2"
	check(t, q.isNew(p), false)
}
