package replicas

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
)

func rejected(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "OutOfcpu"}
}

func TestDecideHoldsBack(t *testing.T) {
	until := noon.Add(10 * time.Second)
	for name, tc := range map[string]struct {
		allowance *rejections.Allowance
		create    int
		until     time.Time
		why       string
	}{
		"nothing without an allowance": {nil, 3, time.Time{}, "3 pods missing of 3"},
		"nothing when all may be made": {&rejections.Allowance{Allowed: 3, InARow: 3, Reason: "OutOfcpu"}, 3, time.Time{}, "3 pods missing of 3"},
		"some": {&rejections.Allowance{Allowed: 1, InARow: 5, Reason: "OutOfcpu"}, 1, time.Time{},
			"3 pods missing of 3, delayed: nodes reject the pods (5 in a row, the last with reason OutOfcpu)"},
		"all": {&rejections.Allowance{InARow: 5, Reason: "OutOfcpu", Until: until}, 0, until,
			"3 pods missing of 3, delayed: nodes reject the pods (5 in a row, the last with reason OutOfcpu)"},
	} {
		t.Run(name, func(t *testing.T) {
			p := Observed{Set: set(3), Allowance: tc.allowance}.decide(nil, noon)
			if p.Create != tc.create || p.Until != tc.until || p.Why != tc.why {
				t.Errorf("got %+v", p)
			}
		})
	}
	if got := (change{Until: until}).wait(noon); got != 10*time.Second {
		t.Errorf("waits %v", got)
	}
}

func TestWithBackoff(t *testing.T) {
	until := noon.Add(10 * time.Second)
	held := func(inARow int) (*rejections.Allowance, change) {
		return &rejections.Allowance{InARow: inARow, Reason: "OutOfcpu", Until: until}, change{Until: until}
	}
	is := func(message string, since time.Duration) appsv1.ReplicaSetCondition {
		return appsv1.ReplicaSetCondition{Type: "ReplacementBackoff", Status: "True", Reason: "PodsRejected", Message: message, LastTransitionTime: ago(since)}
	}
	const two = "nodes reject the pods (2 in a row, the last with reason OutOfcpu); the next pod is created at 2026-01-01T12:00:10Z"
	other := appsv1.ReplicaSetCondition{Type: appsv1.ReplicaSetReplicaFailure}
	allowance, plan := held(2)
	for name, tc := range map[string]struct {
		have      []appsv1.ReplicaSetCondition
		allowance *rejections.Allowance
		plan      change
		want      []appsv1.ReplicaSetCondition
	}{
		"it is added":                          {[]appsv1.ReplicaSetCondition{other}, allowance, plan, []appsv1.ReplicaSetCondition{other, is(two, 0)}},
		"it says the next time":                {[]appsv1.ReplicaSetCondition{is("before", time.Hour), other}, allowance, plan, []appsv1.ReplicaSetCondition{is(two, time.Hour), other}},
		"it stays while a try is under way":    {[]appsv1.ReplicaSetCondition{is("before", time.Hour)}, allowance, change{}, []appsv1.ReplicaSetCondition{is("before", time.Hour)}},
		"it goes when a pod was accepted":      {[]appsv1.ReplicaSetCondition{is("before", time.Hour), other}, &rejections.Allowance{}, change{}, []appsv1.ReplicaSetCondition{other}},
		"it goes when pods are not held back":  {[]appsv1.ReplicaSetCondition{is("before", time.Hour)}, nil, change{}, []appsv1.ReplicaSetCondition{}},
		"without it nothing changes":           {[]appsv1.ReplicaSetCondition{other}, nil, change{}, []appsv1.ReplicaSetCondition{other}},
		"the first replacement needs no words": {nil, &rejections.Allowance{Allowed: 1, InARow: 1}, change{Create: 1}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			before := append([]appsv1.ReplicaSetCondition{}, tc.have...)
			if d := cmp.Diff(tc.want, withBackoff(tc.have, tc.allowance, tc.plan, noon)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(before, append([]appsv1.ReplicaSetCondition{}, tc.have...)); d != "" {
				t.Errorf("what was given is changed: %s", d)
			}
		})
	}
}

func TestRejectedPodsAreReplacedLaterOnlyWithTheFlag(t *testing.T) {
	for name, tc := range map[string]struct {
		on     bool
		made   int
		again  time.Duration
		reason string
	}{
		"off": {false, 1, 0, ""},
		"on":  {true, 0, 9 * time.Second, "PodsRejected"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(replicaSet(1))
			b := newBench(t, client, replicaSet(1),
				pod("a", owned, created(ago(2*time.Second)), rejected), pod("b", owned, created(ago(time.Second)), rejected))
			b.o.RejectedPodBackoff = tc.on
			result := b.Reconcile(context.Background(), key)
			if result.Err() != nil || result.After() != tc.again || count(client, "create", "pods") != tc.made {
				t.Errorf("%v, again after %v, %d pods", result.Err(), result.After(), count(client, "create", "pods"))
			}
			var reason string
			for _, c := range statusOn(t, client).Conditions {
				reason = c.Reason
			}
			if reason != tc.reason {
				t.Errorf("condition with reason %q", reason)
			}
			if !tc.on {
				return
			}
			b.clock.Step(9 * time.Second)
			if b.Reconcile(context.Background(), key); count(client, "create", "pods") != 1 {
				t.Error("no pod was made when it was due")
			}
		})
	}
}
