package tainteviction

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	testclock "k8s.io/utils/clock/testing"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func taint(key string) corev1.Taint {
	return corev1.Taint{Key: key, Value: "1", Effect: corev1.TaintEffectNoExecute}
}

func tolerate(key string) corev1.Toleration {
	return corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute}
}

func tolerateFor(key string, seconds int64) corev1.Toleration {
	t := tolerate(key)
	t.TolerationSeconds = &seconds
	return t
}

func pod(tolerations ...corev1.Toleration) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "p", UID: "uid-p", Generation: 2},
		Spec:       corev1.PodSpec{NodeName: "a", Tolerations: tolerations},
	}
}

func node(taints ...corev1.Taint) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.NodeSpec{Taints: taints}}
}

func TestTolerance(t *testing.T) {
	a, b := taint("a"), taint("b")
	compare := corev1.Toleration{Key: "a", Operator: corev1.TolerationOpGt, Value: "0"}
	for name, tc := range map[string]struct {
		taints      []corev1.Taint
		tolerations []corev1.Toleration
		compares    bool
		want        time.Duration
	}{
		"no toleration":                              {[]corev1.Taint{a}, nil, false, untolerated},
		"one of two taints is not tolerated":         {[]corev1.Taint{a, b}, []corev1.Toleration{tolerateFor("a", 9)}, false, untolerated},
		"no seconds are for ever":                    {[]corev1.Taint{a}, []corev1.Toleration{tolerate("a")}, false, forever},
		"the shortest time counts":                   {[]corev1.Taint{a, b}, []corev1.Toleration{tolerateFor("a", 9), tolerateFor("b", 5)}, false, 5 * time.Second},
		"a time counts beside a toleration for ever": {[]corev1.Taint{a, b}, []corev1.Toleration{tolerate("a"), tolerateFor("b", 5)}, false, 5 * time.Second},
		"the first toleration that matches counts":   {[]corev1.Taint{a}, []corev1.Toleration{tolerate("a"), tolerateFor("a", 5)}, false, forever},
		"the first, also when it is the shorter":     {[]corev1.Taint{a}, []corev1.Toleration{tolerateFor("a", 5), tolerate("a")}, false, 5 * time.Second},
		"zero seconds are none":                      {[]corev1.Taint{a}, []corev1.Toleration{tolerateFor("a", 0)}, false, 0},
		"less than zero seconds are none":            {[]corev1.Taint{a}, []corev1.Toleration{tolerateFor("a", -7)}, false, 0},
		"seconds beyond all time do not overflow":    {[]corev1.Taint{a}, []corev1.Toleration{tolerateFor("a", 1<<62)}, false, forever},
		"nor do twice as many and a bit":             {[]corev1.Taint{a}, []corev1.Toleration{tolerateFor("a", 18446744074)}, false, forever},
		"all that there are do not":                  {[]corev1.Taint{a}, []corev1.Toleration{tolerateFor("a", math.MaxInt64)}, false, forever},
		"the most that a duration has are a time":    {[]corev1.Taint{a}, []corev1.Toleration{tolerateFor("a", 9223372036)}, false, 9223372036 * time.Second},
		"another effect does not match":              {[]corev1.Taint{a}, []corev1.Toleration{{Key: "a", Operator: "Exists", Effect: "NoSchedule"}}, false, untolerated},
		"another value does not match":               {[]corev1.Taint{a}, []corev1.Toleration{{Key: "a", Value: "2"}}, false, untolerated},
		"the same value matches":                     {[]corev1.Taint{a}, []corev1.Toleration{{Key: "a", Value: "1"}}, false, forever},
		"an empty key matches all":                   {[]corev1.Taint{a, b}, []corev1.Toleration{{Operator: "Exists"}}, false, forever},
		"comparing does not match without its gate":  {[]corev1.Taint{a}, []corev1.Toleration{compare}, false, untolerated},
		"comparing matches with its gate":            {[]corev1.Taint{a}, []corev1.Toleration{compare}, true, forever},
		"an operator nobody knows does not match":    {[]corev1.Taint{a}, []corev1.Toleration{{Key: "a", Operator: "Like"}}, true, untolerated},
	} {
		t.Run(name, func(t *testing.T) {
			if got := toleranceOf(tc.taints, tc.tolerations, tc.compares); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}

func TestOnlyADeletionThatTookPlaceIsCounted(t *testing.T) {
	p := plan(observed{key: key, pod: pod(), in: surroundings{taints: []corev1.Taint{taint("a")}}}, noon)
	p = p.Then(act.Results{{Step: act.Patch{Of: pod()}, Became: act.Done}})
	for became, want := range map[act.Outcome]int{act.Done: 2, act.WasGone: 0, act.Refused: 0} {
		if got := len(p.Counts(act.Results{{Step: act.Delete{Of: pod()}, Became: became}})); got != want {
			t.Errorf("%v: counted %d times, want %d", became, got, want)
		}
	}
}

// The duration is from when the pod was to go, in seconds.
func TestHowLateAnEvictionIs(t *testing.T) {
	p := plan(observed{key: key, pod: pod(tolerateFor("a", 5)), in: surroundings{taints: []corev1.Taint{taint("a")}}, booked: &appointment{uid: "uid-p", at: noon}}, noon.Add(2*time.Second))
	p = p.Then(act.Results{{Step: act.Patch{Of: pod(tolerateFor("a", 5))}, Became: act.Done}})
	counts := p.Counts(act.Results{{Step: act.Delete{Of: pod(tolerateFor("a", 5))}, Became: act.Done}})
	if len(counts) != 2 || counts[1].Observes != podDeletionSeconds || !counts[1].Since.Equal(noon) {
		t.Errorf("counts %+v", counts)
	}
}

func TestDecide(t *testing.T) {
	in := func(taints ...corev1.Taint) surroundings { return surroundings{taints: taints} }
	booked := func(at time.Duration) *appointment { return &appointment{uid: "uid-p", at: noon.Add(at)} }
	leavingFor := func(reason string) *corev1.Pod {
		p := pod()
		p.DeletionTimestamp = &metav1.Time{Time: noon}
		p.Status.Conditions = []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: reason}}
		return p
	}
	unmarked := leavingFor("")
	unmarked.Status.Conditions = nil
	for name, tc := range map[string]struct {
		pod    *corev1.Pod
		in     surroundings
		booked *appointment
		do     action
		at     time.Duration
	}{
		"nothing to tolerate":                              {pod(), in(), nil, leave, 0},
		"the taints went":                                  {pod(), in(), booked(time.Second), cancel, 0},
		"not tolerated":                                    {pod(), in(taint("a")), nil, evict, 0},
		"not tolerated any more":                           {pod(), in(taint("a")), booked(time.Minute), evict, 0},
		"tolerated for ever":                               {pod(tolerate("a")), in(taint("a")), nil, leave, 0},
		"tolerated for ever now":                           {pod(tolerate("a")), in(taint("a")), booked(time.Second), cancel, 0},
		"tolerated for a time":                             {pod(tolerateFor("a", 5)), in(taint("a")), nil, wait, 5 * time.Second},
		"tolerated for no time":                            {pod(tolerateFor("a", 0)), in(taint("a")), nil, evict, 0},
		"a time that was set stays":                        {pod(tolerateFor("a", 5)), in(taint("a")), booked(20 * time.Second), wait, 20 * time.Second},
		"the time has come":                                {pod(tolerateFor("a", 5)), in(taint("a")), booked(0), evict, 0},
		"the time is over":                                 {pod(tolerateFor("a", 5)), in(taint("a")), booked(-time.Second), evict, -time.Second},
		"the node went, nothing was set":                   {pod(), surroundings{gone: true}, nil, leave, 0},
		"the node went, the time stays":                    {pod(), surroundings{gone: true}, booked(time.Second), wait, time.Second},
		"the node went, the time is over":                  {pod(), surroundings{gone: true}, booked(-time.Second), evict, -time.Second},
		"a pod that was deleted for a taint is left alone": {leavingFor(conditionReason), in(taint("a")), nil, leave, 0},
		"a pod that is deleted without a reason is not":    {unmarked, in(taint("a")), nil, evict, 0},
		"a pod that is deleted for another reason is not":  {leavingFor("PreemptionByScheduler"), in(taint("a")), nil, evict, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := decide(tc.pod, tc.in, tc.booked, noon)
			at := p.At.Sub(noon)
			if p.At.IsZero() {
				at = 0
			}
			if p.Do != tc.do || at != tc.at || p.Why == "" {
				t.Errorf("got %+v", p)
			}
		})
	}
}

func TestWhatWakesANode(t *testing.T) {
	soft := corev1.Taint{Key: "s", Effect: corev1.TaintEffectNoSchedule}
	for name, tc := range map[string]struct {
		before, after *corev1.Node
		initial, want bool
	}{
		"a node without taints comes": {nil, node(), false, true},
		"it was there at the start":   {nil, node(), true, false},
		"a new node with a taint":     {nil, node(soft, taint("a")), false, true},
		"it had it at the start":      {nil, node(taint("a")), true, true},
		"a taint of another effect":   {node(taint("a")), node(soft, taint("a")), false, false},
		"a taint comes":               {node(soft), node(soft, taint("a")), false, true},
		"a taint goes":                {node(taint("a"), taint("b")), node(taint("b")), false, true},
		"one taint for another":       {node(taint("a")), node(taint("b")), false, true},
		"a node that is gone":         {node(taint("a")), nil, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			var woken wakes
			newRig(t).wakeNode(runner.Change[corev1.Node]{Old: tc.before, New: tc.after, Initial: tc.initial}, &woken)
			if got := len(woken) == 1; got != tc.want {
				t.Errorf("woken: %v", woken)
			}
		})
	}
}

type wakes []string

func (w *wakes) Add(key string)                       { *w = append(*w, key) }
func (w *wakes) AddAfter(key string, _ time.Duration) { *w = append(*w, key) }

// rig is a controller whose caches are filled by hand and whose keys are synced by hand.
type rig struct {
	*Controller
	t      *testing.T
	client *fake.Clientset
	clock  *testclock.FakeClock
	events *record.FakeRecorder
	caches informers.SharedInformerFactory
}

func newRig(t *testing.T, objects ...runtime.Object) *rig {
	t.Helper()
	client := fake.NewClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	r := &rig{t: t, client: client, clock: testclock.NewFakeClock(noon), events: record.NewFakeRecorder(100), caches: factory}
	hand := fixture.Hand(client, r.events)
	hand.Clock = r.clock
	c, err := New(factory.Core().V1().Nodes(), factory.Core().V1().Pods(), hand, Options{})
	if err != nil {
		t.Fatal(err)
	}
	r.Controller = c
	for _, object := range objects {
		r.cache(object)
	}
	return r
}

func (r *rig) cache(object runtime.Object) {
	r.t.Helper()
	indexer := r.caches.Core().V1().Pods().Informer().GetIndexer()
	if _, ok := object.(*corev1.Node); ok {
		indexer = r.caches.Core().V1().Nodes().Informer().GetIndexer()
	}
	if err := indexer.Update(object); err != nil {
		r.t.Fatal(err)
	}
}

var key = types.NamespacedName{Namespace: "ns", Name: "p"}

// expect syncs the pod and compares requests and events.
func (r *rig) expect(after time.Duration, want ...string) runner.Result {
	r.t.Helper()
	r.clock.SetTime(noon.Add(after))
	r.client.ClearActions()
	result := r.podRunner.Reconcile(context.Background(), key)
	var got []string
	for len(r.events.Events) > 0 {
		got = append(got, <-r.events.Events)
	}
	for _, a := range r.client.Actions() {
		got = append(got, a.GetVerb()+" "+a.GetSubresource())
	}
	if !slices.Equal(got, want) {
		r.t.Errorf("after %s: got %q, want %q", after, got, want)
	}
	return result
}

const (
	marking    = "Normal TaintManagerEviction Marking for deletion Pod ns/p"
	cancelling = "Normal TaintManagerEviction Cancelling deletion of Pod ns/p"
)

func TestAPodWaitsAndGoes(t *testing.T) {
	r := newRig(t, node(taint("a")), pod(tolerateFor("a", 5)))
	if look := r.expect(0).After(); look != 5*time.Second {
		t.Errorf("looks again after %s", look)
	}
	if look := r.expect(3 * time.Second).After(); look != 2*time.Second {
		t.Errorf("looks again after %s", look)
	}
	r.expect(5*time.Second, marking, "patch status", "delete ")
	if len(r.booked) != 0 {
		t.Error("the appointment is still there")
	}
}

func TestTheConditionAndThePreconditions(t *testing.T) {
	r := newRig(t, node(taint("a")), pod())
	r.client.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if o := a.(clienttesting.DeleteActionImpl).DeleteOptions; o.Preconditions == nil || *o.Preconditions.UID != "uid-p" {
			t.Errorf("delete options %v", o)
		}
		return true, nil, nil
	})
	r.expect(0, marking, "patch status", "delete ")
	p, _ := r.client.CoreV1().Pods("ns").Get(context.Background(), "p", metav1.GetOptions{})
	want := corev1.PodCondition{Type: "DisruptionTarget", Status: "True", Reason: "DeletionByTaintManager",
		Message: "Taint manager: deleting due to NoExecute taint", ObservedGeneration: 2}
	if len(p.Status.Conditions) == 1 {
		want.LastTransitionTime = p.Status.Conditions[0].LastTransitionTime
	}
	if len(p.Status.Conditions) != 1 || p.Status.Conditions[0] != want || !want.LastTransitionTime.Time.Equal(noon) {
		t.Errorf("conditions %v", p.Status.Conditions)
	}
	r.cache(p)
	r.expect(time.Second, marking, "delete ") // marked before, not deleted: it is not marked twice
}

func TestCancelling(t *testing.T) {
	for name, change := range map[string]func(*rig){
		"the taint goes":                 func(r *rig) { r.cache(node()) },
		"the pod tolerates it for ever":  func(r *rig) { r.cache(pod(tolerate("a"))) },
		"the pod goes by itself":         func(r *rig) { _ = r.pods.Delete(pod()) },
		"another pod has taken its name": func(r *rig) { p := pod(tolerate("a")); p.UID = "other"; r.cache(p) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, node(taint("a")), pod(tolerateFor("a", 5)))
			r.expect(0)
			change(r)
			r.expect(time.Second, cancelling)
			r.expect(5 * time.Second)
		})
	}
}

// While the pod is paused or held nobody looks at it, and its node changes all the same.
func TestAWaitIsForTheTaintsItWasMadeFor(t *testing.T) {
	elsewhere := node()
	elsewhere.Name = "b"
	goes := func(n *corev1.Node) runner.Change[corev1.Node] { return runner.Change[corev1.Node]{Old: n} }
	comes := func(n *corev1.Node) runner.Change[corev1.Node] { return runner.Change[corev1.Node]{New: n} }
	becomes := func(before, after *corev1.Node) runner.Change[corev1.Node] {
		return runner.Change[corev1.Node]{Old: before, New: after}
	}
	a, b, none := node(taint("a")), node(taint("b")), node()
	for name, tc := range map[string]struct {
		changes []runner.Change[corev1.Node]
		afresh  bool // its time starts again
	}{
		"all went, and another came":        {[]runner.Change[corev1.Node]{becomes(a, none), becomes(none, b)}, true},
		"all went twice":                    {[]runner.Change[corev1.Node]{becomes(a, none), becomes(none, a), becomes(a, none), becomes(none, b)}, true},
		"one for the other":                 {[]runner.Change[corev1.Node]{becomes(a, b)}, false},
		"one came before the other went":    {[]runner.Change[corev1.Node]{becomes(a, node(taint("a"), taint("b"))), becomes(node(taint("a"), taint("b")), b)}, false},
		"the node came again without taint": {[]runner.Change[corev1.Node]{goes(a), comes(none), becomes(none, b)}, true},
		"the node came again with one":      {[]runner.Change[corev1.Node]{goes(a), comes(b)}, false},
		"those of another node went":        {[]runner.Change[corev1.Node]{comes(elsewhere), becomes(a, b)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, a, pod(tolerateFor("a", 5), tolerateFor("b", 60)))
			r.wakeNode(becomes(a, none), new(wakes))
			r.wakeNode(becomes(none, a), new(wakes)) // before it was made
			r.expect(0)
			for _, change := range tc.changes {
				r.wakeNode(change, new(wakes))
			}
			r.cache(b)
			if !tc.afresh {
				r.expect(10*time.Second, marking, "patch status", "delete ")
				return
			}
			if look := r.expect(10*time.Second, cancelling).After(); look != time.Minute {
				t.Errorf("looks again after %s", look)
			}
			r.expect(69 * time.Second)
			r.expect(70*time.Second, marking, "patch status", "delete ")
		})
	}
}

func TestAnAnnouncedDeletionForTaintsThatWentIsDroppedWithoutAWord(t *testing.T) {
	r := newRig(t, node(taint("a")), pod(tolerateFor("b", 60)))
	r.client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no")
	})
	r.expect(0, marking, "patch status", "delete ")
	r.wakeNode(runner.Change[corev1.Node]{Old: node(taint("a")), New: node()}, new(wakes))
	r.wakeNode(runner.Change[corev1.Node]{Old: node(), New: node(taint("b"))}, new(wakes))
	r.cache(node(taint("b")))
	if look := r.expect(time.Second).After(); look != time.Minute {
		t.Errorf("looks again after %s", look)
	}
}

func TestANodeThatIsGoneIsForgotten(t *testing.T) {
	r := newRig(t)
	r.wakeNode(runner.Change[corev1.Node]{Old: node(taint("a")), New: node()}, new(wakes))
	r.wakeNode(runner.Change[corev1.Node]{Old: node()}, new(wakes))
	if len(r.cleared) != 0 {
		t.Errorf("remembers %v", r.cleared)
	}
}

func TestASecondTaintThatIsNotToleratedEndsTheWait(t *testing.T) {
	r := newRig(t, node(taint("a")), pod(tolerateFor("a", 50)))
	r.expect(0)
	r.cache(node(taint("a"), taint("b")))
	r.expect(time.Second, cancelling, marking, "patch status", "delete ")
}

func TestAFailingDeleteIsRetriedWithoutAnotherEvent(t *testing.T) {
	r := newRig(t, node(taint("a")), pod())
	r.wakeNode(runner.Change[corev1.Node]{New: node()}, new(wakes)) // it had no taint before
	refused := errors.New("the server is on fire")
	r.client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		err := refused
		refused = nil
		return err != nil, nil, err
	})
	if err := r.expect(0, marking, "patch status", "delete ").Err(); err == nil {
		t.Error("the error is lost")
	}
	if err := r.expect(time.Second, "patch status", "delete ").Err(); err != nil {
		t.Error(err)
	}
}

func TestAWaitThatEndsInAFailureIsNotCancelledWithAWord(t *testing.T) {
	r := newRig(t, node(taint("a")), pod())
	r.client.PrependReactor("delete", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, errors.New("no")
	})
	r.expect(0, marking, "patch status", "delete ")
	r.cache(node())
	r.expect(time.Second)
}

func TestAPodThatIsGoneIsNoError(t *testing.T) {
	for verb, err := range map[string]error{
		"patch":  apierrors.NewNotFound(corev1.Resource("pods"), "p"),
		"delete": apierrors.NewConflict(corev1.Resource("pods"), "p", fmt.Errorf("the UID does not match")),
	} {
		t.Run(verb, func(t *testing.T) {
			r := newRig(t, node(taint("a")), pod())
			r.look()
			r.client.PrependReactor(verb, "pods", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, err })
			if err := r.podRunner.Reconcile(context.Background(), key).Err(); err != nil {
				t.Error(err)
			}
			if len(r.booked) != 0 {
				t.Error("the appointment is still there")
			}
		})
	}
}

func TestWhatWakesAPod(t *testing.T) {
	r := newRig(t, node(taint("a")))
	woken := func(c runner.Change[corev1.Pod]) bool {
		var w podWakes
		r.wakePod(c, &w)
		return len(w) == 1
	}
	elsewhere, unbound := pod(), pod()
	elsewhere.Spec.NodeName, unbound.Spec.NodeName = "b", ""
	if !woken(runner.Change[corev1.Pod]{New: pod()}) || !woken(runner.Change[corev1.Pod]{Old: unbound, New: pod()}) ||
		!woken(runner.Change[corev1.Pod]{Old: pod(), New: pod(tolerate("x"))}) {
		t.Error("a pod on a tainted node was not woken")
	}
	if woken(runner.Change[corev1.Pod]{New: elsewhere}) || woken(runner.Change[corev1.Pod]{New: unbound}) ||
		woken(runner.Change[corev1.Pod]{Old: pod(), New: pod()}) || woken(runner.Change[corev1.Pod]{Old: pod()}) {
		t.Error("a pod was woken for nothing")
	}
	r.remember(key, &appointment{})
	if !woken(runner.Change[corev1.Pod]{Old: pod()}) {
		t.Error("a pod that went while it waited was not woken")
	}
}

type podWakes []types.NamespacedName

func (w *podWakes) Add(key types.NamespacedName)                       { *w = append(*w, key) }
func (w *podWakes) AddAfter(key types.NamespacedName, _ time.Duration) { *w = append(*w, key) }

func TestANodeWakesItsPods(t *testing.T) {
	other := pod()
	other.Name, other.Spec.NodeName = "q", "b"
	r := newRig(t, node(taint("a")), pod(), other)
	r.syncNode(context.Background(), "a")
	if r.podRunner.Len() != 1 {
		t.Errorf("%d pods were woken", r.podRunner.Len())
	}
}
