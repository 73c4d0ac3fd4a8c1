package nodelifecycle

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

type tweak func(*corev1.Node)

func node(name string, tweaks ...tweak) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), CreationTimestamp: metav1.NewTime(noon.Add(-time.Hour))}}
	for _, t := range tweaks {
		t(n)
	}
	return n
}

func says(of corev1.NodeConditionType, status corev1.ConditionStatus) tweak {
	return func(n *corev1.Node) {
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: of, Status: status, LastHeartbeatTime: metav1.NewTime(noon.Add(-time.Minute))})
	}
}

func ready(status corev1.ConditionStatus) tweak { return says(corev1.NodeReady, status) }

func beat(at time.Time) tweak {
	return func(n *corev1.Node) {
		for i := range n.Status.Conditions {
			n.Status.Conditions[i].LastHeartbeatTime = metav1.NewTime(at)
		}
	}
}

func born(at time.Time) tweak {
	return func(n *corev1.Node) { n.CreationTimestamp = metav1.NewTime(at) }
}

func taints(list ...string) tweak {
	return func(n *corev1.Node) {
		for _, t := range list {
			key, effect, _ := strings.Cut(t, ":")
			n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffect(effect)})
		}
	}
}

func labels(pairs ...string) tweak {
	return func(n *corev1.Node) {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		for _, p := range pairs {
			k, v, _ := strings.Cut(p, "=")
			n.Labels[k] = v
		}
	}
}

func cordoned(n *corev1.Node) { n.Spec.Unschedulable = true }

func renewed(at time.Time) *coordinationv1.Lease {
	t := metav1.NewMicroTime(at)
	return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &t}}
}

func TestHeartbeat(t *testing.T) {
	type seen struct {
		after time.Duration
		node  *corev1.Node
		lease *coordinationv1.Lease
	}
	g := graces{monitor: 50 * time.Second, startup: 60 * time.Second}
	wrongClock := noon.Add(-1000 * time.Hour)
	for name, tc := range map[string]struct {
		seen []seen
		at   time.Duration
		want bool
	}{
		"a node seen for the first time has its whole grace period, however old its heartbeat": {
			[]seen{{0, node("a", ready("True"), beat(wrongClock)), nil}}, 50 * time.Second, false},
		"a node that posts nothing more is silent after the grace period": {
			[]seen{{0, node("a", ready("True")), nil}, {30 * time.Second, node("a", ready("True")), nil}}, 50*time.Second + 1, true},
		"a new heartbeat counts from when it was noticed": {
			[]seen{{0, node("a", ready("True")), nil}, {40 * time.Second, node("a", ready("True"), beat(wrongClock)), nil}}, 90 * time.Second, false},
		"a renewed lease counts from when it was noticed": {
			[]seen{{0, node("a", ready("True")), renewed(wrongClock)}, {40 * time.Second, node("a", ready("True")), renewed(wrongClock.Add(1))}}, 90 * time.Second, false},
		"a lease that is not renewed keeps nobody alive": {
			[]seen{{0, node("a", ready("True")), renewed(noon)}, {40 * time.Second, node("a", ready("True")), renewed(noon)}}, 51 * time.Second, true},
		"a lease that was set back is no news": {
			[]seen{{0, node("a", ready("True")), renewed(noon)}, {40 * time.Second, node("a", ready("True")), renewed(wrongClock)}}, 51 * time.Second, true},
		"after a new heartbeat it is where renewals count from": {
			[]seen{{0, node("a", ready("True")), renewed(noon)}, {20 * time.Second, node("a", ready("True"), beat(wrongClock)), renewed(wrongClock)},
				{60 * time.Second, node("a", ready("True"), beat(wrongClock)), renewed(wrongClock.Add(40 * time.Second))}}, 110 * time.Second, false},
		"a lease without a renew time counts once": {
			[]seen{{0, node("a", ready("True")), &coordinationv1.Lease{}}, {40 * time.Second, node("a", ready("True")), &coordinationv1.Lease{}}}, 51 * time.Second, true},
		"a lease that goes away is no news": {
			[]seen{{0, node("a", ready("True")), renewed(noon)}, {40 * time.Second, node("a", ready("True")), nil}}, 51 * time.Second, true},
		"a node that never posted has the startup grace period from its creation": {
			[]seen{{30 * time.Second, node("a", born(noon)), nil}}, 60 * time.Second, false},
		"a node that never posted is silent after the startup grace period": {
			[]seen{{30 * time.Second, node("a", born(noon)), nil}}, 60*time.Second + 1, true},
		"a node that never posted but renews its lease is left alone": {
			[]seen{{30 * time.Second, node("a", born(noon)), renewed(wrongClock)}}, 90 * time.Second, false},
		"the first status counts as a heartbeat": {
			[]seen{{0, node("a", born(noon)), nil}, {30 * time.Second, node("a", ready("False")), nil}}, 80 * time.Second, false},
		"a Ready condition that is taken away counts as a heartbeat": {
			[]seen{{0, node("a", ready("True")), nil}, {30 * time.Second, node("a"), nil}}, 90 * time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			var h heartbeat
			for _, s := range tc.seen {
				h.see(s.node, s.lease, noon.Add(s.after))
			}
			if got := h.silent(g, noon.Add(tc.at)); got != tc.want {
				t.Errorf("silent: got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestConditionsOfSilence(t *testing.T) {
	const stopped = "NodeStatusUnknown Kubelet stopped posting node status."
	const never = "NodeStatusNeverUpdated Kubelet never posted node status."
	for name, tc := range map[string]struct {
		node *corev1.Node
		want []string
	}{
		"a node that posted all": {
			node("a", says(corev1.NodeMemoryPressure, "False"), says(corev1.NodeDiskPressure, "True"), says(corev1.NodePIDPressure, "False"), ready("True")),
			[]string{"Ready " + stopped + " 11:59", "MemoryPressure " + stopped + " 11:59", "DiskPressure " + stopped + " 11:59", "PIDPressure " + stopped + " 11:59"}},
		"a node that posted nothing has its creation for a heartbeat": {
			node("a"),
			[]string{"Ready " + never + " 11:00", "MemoryPressure " + never + " 11:00", "DiskPressure " + never + " 11:00", "PIDPressure " + never + " 11:00"}},
		"what is unknown already is left alone, and so is the network": {
			node("a", ready("False"), says(corev1.NodeMemoryPressure, "Unknown"), says(corev1.NodeNetworkUnavailable, "False")),
			[]string{"Ready " + stopped + " 11:59", "DiskPressure " + never + " 11:00", "PIDPressure " + never + " 11:00"}},
		"a node whose Ready is unknown needs nothing": {
			node("a", ready("Unknown"), says(corev1.NodeMemoryPressure, "False")), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, c := range conditionsOfSilence(tc.node, noon) {
				if c.Status != corev1.ConditionUnknown || !c.LastTransitionTime.Time.Equal(noon) {
					t.Errorf("status and transition time of %v", c)
				}
				got = append(got, string(c.Type)+" "+c.Reason+" "+c.Message+" "+c.LastHeartbeatTime.Format("15:04"))
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestConditionsArePatchedInTheOrderTheyWillHave(t *testing.T) {
	n := node("a", says(corev1.NodeDiskPressure, "False"), says("Custom", "True"), ready("True"))
	set := conditionsOfSilence(n, noon)
	order := inOrder(n, set)
	want := []conditionKey{{"DiskPressure"}, {"Custom"}, {"Ready"}, {"MemoryPressure"}, {"PIDPressure"}}
	if d := cmp.Diff(want, order); d != "" {
		t.Error(d)
	}
	var patched []corev1.NodeConditionType
	for _, c := range set {
		patched = append(patched, c.Type)
	}
	if d := cmp.Diff([]corev1.NodeConditionType{"DiskPressure", "Ready", "MemoryPressure", "PIDPressure"}, patched); d != "" {
		t.Error(d)
	}
}

func TestTaints(t *testing.T) {
	const nr, un = "node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"
	const mem, disk, pid, net, cordon = "node.kubernetes.io/memory-pressure:NoSchedule", "node.kubernetes.io/disk-pressure:NoSchedule",
		"node.kubernetes.io/pid-pressure:NoSchedule", "node.kubernetes.io/network-unavailable:NoSchedule", "node.kubernetes.io/unschedulable:NoSchedule"
	for name, tc := range map[string]struct {
		node   *corev1.Node
		given  order
		want   []string
		evicts bool
		still  bool
	}{
		"a ready node without taints is left alone": {node: node("a", ready("True")), still: true},
		"the taints of conditions come in the order of the conditions, unschedulable last": {
			node: node("a", cordoned, says(corev1.NodePIDPressure, "True"), says(corev1.NodeDiskPressure, "True"), says(corev1.NodeMemoryPressure, "True"),
				says(corev1.NodeNetworkUnavailable, "True"), ready("False")),
			want: []string{pid, disk, mem, net, nr + ":NoSchedule", cordon}},
		"unknown pressure taints nothing": {
			node: node("a", says(corev1.NodeMemoryPressure, "Unknown"), ready("True")), still: true},
		"taints of others stay where they are": {
			node: node("a", ready("True"), taints("mine:NoExecute", mem, nr+":NoSchedule", nr+":PreferNoSchedule", "yours:NoSchedule")),
			want: []string{"mine:NoExecute", nr + ":PreferNoSchedule", "yours:NoSchedule"}},
		"a new node without conditions loses the taint it was admitted with": {
			node: node("a", taints(nr+":NoSchedule")), want: []string{}},
		"without Ready the NoExecute taints are left alone": {
			node: node("a", taints(nr+":NoExecute")), given: orderTaint, still: true},
		"nor is one put on": {
			node: node("a"), given: orderTaint, still: true},
		"but they go in a full disruption": {
			node: node("a", taints(nr+":NoExecute")), given: orderClear, want: []string{}},
		"a node that is not ready waits for the rate of its zone": {
			node: node("a", ready("False"), taints(nr+":NoSchedule")), still: true},
		"with the zone's leave it gets its taint": {
			node: node("a", ready("False")), given: orderTaint, want: []string{nr + ":NoSchedule", nr + ":NoExecute"}, evicts: true},
		"an unreachable node gets the other": {
			node: node("a", ready("Unknown")), given: orderTaint, want: []string{un + ":NoSchedule", un + ":NoExecute"}, evicts: true},
		"a taint that is there is kept as it is": {
			node: node("a", ready("Unknown"), taints(un+":NoSchedule", un+":NoExecute")), given: orderTaint, still: true},
		"of both the one that is right stays as it is": {
			node: node("a", ready("Unknown"), taints(un+":NoSchedule", un+":NoExecute", nr+":NoExecute")), want: []string{un + ":NoSchedule", un + ":NoExecute"}},
		"from False to Unknown both taints are swapped without leave": {
			node: node("a", ready("Unknown"), taints(nr+":NoSchedule", nr+":NoExecute")), want: []string{un + ":NoSchedule", un + ":NoExecute"}},
		"from Unknown to False both taints are swapped without leave": {
			node: node("a", ready("False"), taints("x:NoSchedule", un+":NoExecute", un+":NoSchedule")), want: []string{"x:NoSchedule", nr + ":NoSchedule", nr + ":NoExecute"}},
		"a node with both keeps the right one": {
			node: node("a", ready("False"), taints(un+":NoExecute", nr+":NoExecute", nr+":NoSchedule")), want: []string{nr + ":NoExecute", nr + ":NoSchedule"}},
		"a node that is ready again loses all": {
			node: node("a", ready("True"), taints(un+":NoExecute", un+":NoSchedule", nr+":NoExecute")), given: orderTaint, want: []string{}},
		"in a full disruption only the NoExecute taint goes": {
			node: node("a", ready("Unknown"), taints(un+":NoExecute", un+":NoSchedule")), given: orderClear, want: []string{un + ":NoSchedule"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := planTaints(tc.node, tc.given)
			if p.empty() != tc.still || p.evicts != tc.evicts {
				t.Errorf("got %+v", p)
			}
			if tc.still {
				return
			}
			got := []string{}
			for _, taint := range p.apply(tc.node, noon) {
				got = append(got, taint.Key+":"+string(taint.Effect))
				added := slices.Contains(p.add, taintID{taint.Key, taint.Effect})
				if added != (taint.TimeAdded != nil) || added && !taint.TimeAdded.Time.Equal(noon) {
					t.Errorf("timeAdded of %v", taint)
				}
			}
			if d := cmp.Diff(tc.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestWhyANodeIsWrittenOrWaits(t *testing.T) {
	const nr = "node.kubernetes.io/not-ready"
	silent := memory{heartbeat: heartbeat{probe: noon.Add(-51 * time.Second)}, silent: true}
	for name, tc := range map[string]struct {
		node   *corev1.Node
		memory memory
		want   string
		steps  int
	}{
		"nothing to do": {node("a", ready("True")), memory{}, "conditions, taints and labels are up to date", 0},
		"silent":        {node("a", ready("True")), silent, "no heartbeat for 51s: setting 4 conditions to Unknown", 1},
		"in line": {node("a", ready("False"), taints(nr+":NoSchedule")), memory{zone: "z"},
			`not ready: waits until the rate of zone "z" allows the NoExecute taint`, 0},
		"let through": {node("a", ready("False"), taints(nr+":NoSchedule")), memory{zone: "z", order: orderTaint},
			`not ready, and the rate of zone "z" allows the NoExecute taint`, 1},
		"tainted": {node("a", ready("False"), taints(nr+":NoSchedule", nr+":NoExecute")), memory{}, "not ready, and tainted for it already: conditions, taints and labels are up to date", 0},
		"ready again": {node("a", ready("True"), taints(nr+":NoSchedule")), memory{},
			"updating taints to match the conditions: adding [], removing [" + nr + ":NoSchedule]", 1},
		"an old label": {node("a", ready("True"), labels("kubernetes.io/os=linux")), memory{}, "copying 1 labels", 0}, // in the next plan
	} {
		t.Run(name, func(t *testing.T) {
			p := observedNode{node: tc.node, memory: tc.memory}.plan(noon)
			if p.Why != tc.want || len(p.Stages) != tc.steps {
				t.Errorf("%d stages, because %q", len(p.Stages), p.Why)
			}
		})
	}
}

func TestLabels(t *testing.T) {
	for name, tc := range map[string]struct {
		node *corev1.Node
		want map[string]string
	}{
		"no labels":            {node("a"), nil},
		"both copies are made": {node("a", labels("kubernetes.io/os=linux", "kubernetes.io/arch=arm64")), map[string]string{"beta.kubernetes.io/os": "linux", "beta.kubernetes.io/arch": "arm64"}},
		"a copy that is wrong is set right": {
			node("a", labels("kubernetes.io/os=linux", "beta.kubernetes.io/os=windows")), map[string]string{"beta.kubernetes.io/os": "linux"}},
		"copies that are right are left alone":  {node("a", labels("kubernetes.io/os=linux", "beta.kubernetes.io/os=linux")), nil},
		"a copy without an original stays":      {node("a", labels("beta.kubernetes.io/os=linux")), nil},
		"an empty label is a label like others": {node("a", labels("kubernetes.io/os=")), map[string]string{"beta.kubernetes.io/os": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := planLabels(tc.node); !maps.Equal(got, tc.want) || (got == nil) != (tc.want == nil) {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}

func TestWhatWakesANode(t *testing.T) {
	base := func(tweaks ...tweak) *corev1.Node { return node("a", append([]tweak{ready("True")}, tweaks...)...) }
	for name, tc := range map[string]struct {
		before, after *corev1.Node
		want          bool
	}{
		"a new node":             {nil, base(), true},
		"a node that is gone":    {base(), nil, true},
		"a heartbeat alone":      {base(), base(beat(noon)), false},
		"a condition that turns": {base(), node("a", ready("False")), true},
		"a new condition":        {base(), base(says(corev1.NodeDiskPressure, "True")), true},
		"a cordon":               {base(), base(cordoned), true},
		"a taint":                {base(), base(taints("x:NoExecute")), true},
		"another taint":          {base(taints("x:NoSchedule")), base(taints("x:NoExecute")), true},
		"a label":                {base(), base(labels("a=b")), true},
	} {
		t.Run(name, func(t *testing.T) {
			var woken wakes
			wakeNode(runner.Change[corev1.Node]{Old: tc.before, New: tc.after}, &woken)
			if got := len(woken) == 1; got != tc.want {
				t.Errorf("woken: %v", woken)
			}
		})
	}
}

type wakes []target

func (w *wakes) Add(key target)                       { *w = append(*w, key) }
func (w *wakes) AddAfter(key target, _ time.Duration) { *w = append(*w, key) }

func TestPodReadiness(t *testing.T) {
	with := func(status corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: "True"},
			{Type: corev1.PodReady, Status: status, Reason: "r", Message: "m", ObservedGeneration: 3},
		}}}
	}
	set := &corev1.PodCondition{Type: corev1.PodReady, Status: "False", Reason: "r", Message: "m", ObservedGeneration: 3, LastTransitionTime: metav1.NewTime(noon)}
	for name, tc := range map[string]struct {
		pod  *corev1.Pod
		want *corev1.PodCondition
	}{
		"a ready pod is marked, its reason and message stay": {with("True"), set},
		"a pod that does not know is marked":                 {with("Unknown"), set},
		"a pod that is not ready is left alone":              {with("False"), nil},
		"a pod that never said anything is left alone":       {&corev1.Pod{}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, notReadyCondition(tc.pod, noon)); d != "" {
				t.Error(d)
			}
		})
	}
}
