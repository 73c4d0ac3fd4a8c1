package nodeipam

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/test/fixture"
)

func aNode(cidrs ...string) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "u"}}
	n.Spec.PodCIDRs = cidrs
	if len(cidrs) > 0 {
		n.Spec.PodCIDR = cidrs[0]
	}
	return n
}

func leaving(n *corev1.Node) *corev1.Node {
	n.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	return n
}

const patch = `patch Node a {"metadata":{"uid":"u"},"spec":{"podCIDR":"fd00::/64","podCIDRs":["fd00::/64","10.0.0.0/24"]}}`

func TestPlan(t *testing.T) {
	both := proposal{cidrs: []string{"fd00::/64", "10.0.0.0/24"}}
	full := errors.New("all 8 blocks are used")
	for name, tc := range map[string]struct {
		o          observed
		wants, why string
		again      time.Duration
		failed     string
		terminal   bool
	}{
		"a node without CIDRs gets its proposal": {o: observed{node: aNode(), proposal: both}, wants: patch, why: "it gets fd00::/64,10.0.0.0/24, try 1"},
		"what it has stays":                      {o: observed{node: aNode("10.0.0.0/24")}, why: "it has 10.0.0.0/24"},
		"one family is not made two":             {o: observed{node: aNode("10.0.0.0/24"), proposal: both}, why: "it has 10.0.0.0/24"},
		"a node on its way out gets nothing":     {o: observed{node: leaving(aNode())}, why: "it is being deleted"},
		"no block is left": {o: observed{node: aNode(), proposal: proposal{exhausted: full}}, wants: "tell Node a",
			why: full.Error(), failed: full.Error()},
		"a CIDR from elsewhere": {o: observed{node: aNode("10.9.0.0/24"), outside: errors.New("10.9.0.0/24 is in no cluster CIDR (10.0.0.0/16)")},
			wants: "tell Node a", why: "it keeps what it has", terminal: true,
			failed: "node a has a pod CIDR that is not one of this cluster: 10.9.0.0/24 is in no cluster CIDR (10.0.0.0/16)"},
		"the cache is behind a live look": {o: observed{node: aNode(), behind: true}, why: "waiting until the cache shows the node as it is", again: time.Second},
		"the cache is behind the list": {o: observed{node: aNode(), proposal: proposal{cidrs: both.cidrs, there: true}},
			why: "waiting until the cache shows that it has fd00::/64,10.0.0.0/24", again: 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(tc.o, time.Time{})
			if got := fixture.Planned(p); got != tc.wants || p.Why != tc.why || p.RequeueAfter != tc.again {
				t.Errorf("wants %q because %q, again after %s", got, p.Why, p.RequeueAfter)
			}
			err := p.Err
			if tc.terminal {
				err = p.Terminal
			}
			if tc.failed == "" && err != nil || tc.failed != "" && (err == nil || err.Error() != tc.failed) {
				t.Errorf("failed with %v", err)
			}
		})
	}
}

func TestWhatIsTold(t *testing.T) {
	for reason, o := range map[string]observed{
		"CIDRNotAvailable": {node: aNode(), proposal: proposal{exhausted: errors.New("none left")}},
		"CIDROutOfRange":   {node: aNode("10.9.0.0/24"), outside: errors.Join(errors.New("one"), errors.New("two"))},
	} {
		e := plan(o, time.Time{}).Stages[0].Steps[0].(act.Event)
		on, isNode := e.On.(*corev1.Node)
		if !isNode || on.Name != o.node.Name || on.UID != o.node.UID || o.exhausted != nil && on.ResourceVersion != "" {
			t.Errorf("told about %+v", e.On)
		}
		want := act.Event{On: e.On, Type: "Normal", Reason: reason, Message: "Node a status is now: " + reason}
		if o.outside != nil {
			want.Type, want.Message = "Warning", "Node has a pod CIDR that is not one of this cluster: one; two"
		}
		if e != want {
			t.Errorf("told %+v, want %+v", e, want)
		}
	}
}

// TestARefusalIsTriedThreeTimes follows a plan whose patch is refused.
func TestARefusalIsTriedThreeTimes(t *testing.T) {
	forbidden := apierrors.NewForbidden(corev1.Resource("nodes"), "a", errors.New("a webhook"))
	invalid := apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Node").GroupKind(), "a", nil)
	for name, tc := range map[string]struct {
		err    error
		looked bool
		want   string
		doubts bool
	}{
		"a webhook":                                {forbidden, false, "patch, patch, patch, tell", false},
		"invalid: it may have CIDRs, so look":      {invalid, false, "patch", true},
		"invalid although it was looked at before": {invalid, true, "patch, patch, patch, tell", true},
		"no answer":                                {apierrors.NewTimeoutError("lost", 0), false, "patch, patch, patch, tell", false},
	} {
		t.Run(name, func(t *testing.T) {
			p := plan(observed{node: aNode(), looked: tc.looked, proposal: proposal{cidrs: []string{"10.0.0.0/24"}}}, time.Time{})
			var did []string
			var results act.Results
			for {
				for _, stage := range p.Stages {
					for _, step := range stage.Steps {
						did = append(did, step.Verb())
						result := act.Result{Step: step, Became: act.Refused, Err: tc.err}
						if _, is := step.(act.Event); is {
							result = act.Result{Step: step, Became: act.Done}
						}
						results = append(results, result)
					}
				}
				if p.Else == nil {
					break
				}
				p = p.Else(results)
			}
			if got := strings.Join(did, ", "); got != tc.want || (p.Note != nil) != tc.doubts || results.Err() == nil {
				t.Errorf("%s; noted: %t; error: %v", got, p.Note != nil, results.Err())
			}
		})
	}
}

func TestATryThatSucceedsEndsThePlan(t *testing.T) {
	p := assignment(observed{node: aNode(), proposal: proposal{cidrs: []string{"10.0.0.0/24"}}}, 2)
	before := act.Result{Step: p.Stages[0].Steps[0], Became: act.Refused, Err: errors.New("refused")}
	if err := p.Retry(act.Results{before, {Step: p.Stages[0].Steps[0], Became: act.Done}}); err != nil {
		t.Errorf("it is retried: %v", err)
	}
	if p.Retry(act.Results{before}) == nil {
		t.Error("a failure is not retried")
	}
}
