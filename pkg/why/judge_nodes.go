package why

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/seconds"
)

// leaving is whether a pod leaves its node, and when; zero for at once, or when it is on
// its way already.
type leaving struct {
	leaves bool
	at     time.Time
}

// leavingOf is about a pod of a node with these taints. A toleration that ends counts
// from when the taint was set, which is what a first look at the pod knows; the controller
// that evicts shows its own time.
func leavingOf(node *corev1.Node, pod *corev1.Pod, now time.Time) leaving {
	if pod.DeletionTimestamp != nil {
		return leaving{leaves: true}
	}
	var first leaving
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		if taint.Effect != corev1.TaintEffectNoExecute {
			continue
		}
		tolerated, is := tolerance(pod, taint)
		switch {
		case !is:
			return leaving{leaves: true}
		case tolerated == nil, seconds.Of(*tolerated) == math.MaxInt64: // never, as in taint eviction
			continue
		}
		since := now
		if taint.TimeAdded != nil {
			since = taint.TimeAdded.Time
		}
		if at := since.Add(seconds.Of(max(*tolerated, 0))); !first.leaves || at.Before(first.at) {
			first = leaving{true, at}
		}
	}
	return first
}

// tolerance is for how long a pod tolerates a taint, nil for without an end: by the first
// toleration that matches, as pods are evicted.
func tolerance(pod *corev1.Pod, taint *corev1.Taint) (seconds *int64, tolerated bool) {
	for i := range pod.Spec.Tolerations {
		if t := &pod.Spec.Tolerations[i]; t.ToleratesTaint(klog.Logger{}, taint, true) {
			return t.TolerationSeconds, true
		}
	}
	return nil, false
}

func judgeNodeHere(l *look, node *corev1.Node, _ []Controller) finding {
	pods, known := l.podsOn(node.Name)
	return judgeNode(node, pods, known, l.now)
}

// judgeNode is about a node with these pods, when they are known.
func judgeNode(node *corev1.Node, pods []*corev1.Pod, known bool, now time.Time) finding {
	var f finding
	ready := corev1.NodeCondition{Status: corev1.ConditionUnknown, Reason: "never reported"}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			ready = c
		}
	}
	f.facts = append(f.facts, fmt.Sprintf("Ready is %s (%s)", ready.Status, ready.Reason))
	var taints []string
	for i := range node.Spec.Taints {
		taint := &node.Spec.Taints[i]
		taints = append(taints, taint.ToString())
		said := "taint " + taint.ToString()
		if taint.TimeAdded != nil {
			said += " since " + taint.TimeAdded.UTC().Format(time.RFC3339)
		}
		f.facts = append(f.facts, said)
	}
	slices.Sort(taints)
	leave, next := 0, time.Time{}
	for _, pod := range pods {
		if l := leavingOf(node, pod, now); l.leaves {
			leave++
			if l.at.After(now) && (next.IsZero() || l.at.Before(next)) {
				next = l.at
			}
		}
	}
	said := ""
	if known {
		f.facts = append(f.facts, plural(len(pods), "pod"), fmt.Sprintf("%d of them leave or have to", leave))
		if leave > 0 {
			said = fmt.Sprintf("; %d of %s leave or have to", leave, plural(len(pods), "pod"))
		}
	}
	f.until = next
	with := ""
	if len(taints) > 0 {
		with = ", with taints " + strings.Join(taints, ", ")
	}
	switch {
	case ready.Status != corev1.ConditionTrue:
		since := ""
		if !ready.LastTransitionTime.IsZero() {
			since = " for " + inWords(now.Sub(ready.LastTransitionTime.Time))
		}
		return f.with(Waiting, fmt.Sprintf("it has not been ready%s (%s)%s%s", since, ready.Reason, with, said)).because(ready.Message)
	case leave > 0:
		return f.with(Progressing, "it is ready"+with+said)
	case node.Spec.Unschedulable:
		return f.with(Paused, "it is cordoned (spec.unschedulable): it keeps its pods and gets no new ones"+with)
	}
	return f.with(Complete, "it is ready"+with)
}

func judgeLease(l *look, lease *coordinationv1.Lease, _ []Controller) finding {
	return leaseFinding(lease, l.now)
}

func leaseFinding(lease *coordinationv1.Lease, now time.Time) finding {
	f := finding{facts: []string{fmt.Sprintf("lasts %d seconds", ptr.Deref(lease.Spec.LeaseDurationSeconds, 0))}}
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	if lease.Spec.RenewTime == nil || holder == "" {
		return f.with(Waiting, "nobody holds it")
	}
	age := now.Sub(lease.Spec.RenewTime.Time)
	f.facts = append(f.facts, "renewed at "+lease.Spec.RenewTime.UTC().Format(time.RFC3339))
	said := fmt.Sprintf("%s renewed it %s ago", holder, inWords(age))
	if d := ptr.Deref(lease.Spec.LeaseDurationSeconds, 0); d > 0 && age > time.Duration(d)*time.Second {
		return f.with(Waiting, said+", which is longer than it lasts")
	}
	return f.with(Complete, said)
}
