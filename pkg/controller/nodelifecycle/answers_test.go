package nodelifecycle

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"
)

var nodeResource = corev1.SchemeGroupVersion.WithResource("nodes")

func version(v string) tweak { return func(n *corev1.Node) { n.ResourceVersion = v } }

// loseAnswer has the next report of a node arrive or not, without an answer. After it, the
// API server heeds versions.
func (r *rig) loseAnswer(arrives bool) {
	lost := false
	r.client.PrependReactor("patch", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		patch := a.(clienttesting.PatchAction)
		found, err := r.client.Tracker().Get(nodeResource, "", patch.GetName())
		if err != nil {
			return true, nil, err
		}
		live := found.(*corev1.Node)
		if lost {
			if strings.Contains(string(patch.GetPatch()), fmt.Sprintf(`"resourceVersion":%q`, live.ResourceVersion)) {
				return false, nil, nil
			}
			return true, nil, apierrors.NewConflict(corev1.Resource("nodes"), live.Name, errors.New("it has changed"))
		}
		lost = true
		if arrives {
			marked := unknownNow(live)
			marked.ResourceVersion = "2"
			if err := r.client.Tracker().Update(nodeResource, marked, ""); err != nil {
				return true, nil, err
			}
		}
		return true, nil, apierrors.NewTimeoutError("no answer", 1)
	})
}

// becomes is what the API server and the cache have of a node from now on.
func becomes(status corev1.ConditionStatus, v string) func(*rig) {
	return func(r *rig) {
		n := node("a", ready(status), beat(r.clock.Now()), version(v))
		if err := r.client.Tracker().Update(nodeResource, n, ""); err != nil {
			r.t.Fatal(err)
		}
		r.cache(n)
	}
}

func TestWhatFollowsFromAReportThatGotNoAnswer(t *testing.T) {
	behind := func(*rig) {}
	isRenewed := func(r *rig) { r.cacheLease(leaseOf("a", r.clock.Now())) }
	for name, tc := range map[string]struct {
		was     corev1.ConditionStatus
		arrives bool
		then    []func(*rig) // before each of the next looks
		want    bool
	}{
		"it has arrived":                           {"True", true, []func(*rig){(*rig).refresh}, true},
		"it has, and the cache is behind":          {"True", true, []func(*rig){behind}, true},
		"it has, and a lease comes before":         {"True", true, []func(*rig){isRenewed, (*rig).refresh}, true},
		"it has, and the node is not ready itself": {"True", true, []func(*rig){becomes("False", "3")}, true},
		"it has, and the node is back":             {"True", true, []func(*rig){becomes("True", "3")}, false},
		"the node is back, and fails later":        {"True", true, []func(*rig){becomes("True", "3"), becomes("False", "4")}, false},
		"it has not, and is sent again":            {"True", false, []func(*rig){behind}, true},
		"the node was not ready before":            {"False", true, []func(*rig){(*rig).refresh}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, node("a", ready(tc.was), version("1")), node("b", ready("True")), podOn("p", "a"))
			r.do(monitorPass)
			r.elapse(51 * time.Second)
			r.cache(node("b", ready("True"), beat(r.clock.Now())))
			r.do(monitorPass)
			r.recorded()
			r.loseAnswer(tc.arrives)
			if err := r.nodeRunner.Reconcile(t.Context(), target{node: "a"}).Err(); err == nil {
				t.Error("no answer is no failure")
			}
			if events, woken := r.recorded(), r.podRunner.Len(); len(events)+woken > 0 {
				t.Errorf("%d pods are woken before anything is known, events %q", woken, events)
			}
			for _, change := range tc.then {
				change(r)
				r.do(target{node: "a"})
			}
			var want []string
			if tc.want {
				want = []string{"Normal NodeNotReady Node a status is now: NodeNotReady"}
			}
			equal(t, "events", r.recorded(), want)
			if woken := r.podRunner.Len(); woken != len(want) {
				t.Errorf("%d pods are woken", woken)
			}
			r.refresh()
			r.do(target{node: "a"})
			equal(t, "events once all is said", r.recorded(), nil)
		})
	}
}
