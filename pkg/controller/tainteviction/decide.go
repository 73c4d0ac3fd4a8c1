package tainteviction

import (
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/seconds"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

const (
	conditionReason  = "DeletionByTaintManager"
	conditionMessage = "Taint manager: deleting due to NoExecute taint"
)

// appointment is the deletion of a pod that was decided on.
type appointment struct {
	uid types.UID
	// at is when the pod is to be deleted.
	at time.Time
	// cleared is when all NoExecute taints of its node had last gone, as a number.
	cleared int
	// announced: its time has come and the event was sent. It is not cancelled with
	// an event any more.
	announced bool
}

// action is what to do with a pod.
type action string

const (
	leave  action = "leave"
	wait   action = "wait"
	cancel action = "cancel"
	evict  action = "evict"
)

// decision is what to do with a pod, when, and why.
type decision struct {
	Do  action
	At  time.Time
	Why string
}

// surroundings are what a decision about a pod depends on besides the pod.
type surroundings struct {
	taints []corev1.Taint // the NoExecute taints of its node
	gone   bool           // there is no such node
	// compares admits the toleration operators Lt and Gt.
	compares bool
}

// decide says what to do with a pod, given the appointment it has, if any.
func decide(pod *corev1.Pod, in surroundings, booked *appointment, now time.Time) decision {
	if leaving(pod) {
		return decision{Do: leave, Why: "already being deleted for a taint"}
	}
	if in.gone {
		return keep(booked, now, "its node is gone")
	}
	if len(in.taints) == 0 {
		return drop(booked, "its node has no NoExecute taint")
	}
	span := toleranceOf(in.taints, pod.Spec.Tolerations, in.compares)
	switch {
	case span == untolerated:
		return decision{Do: evict, At: now, Why: "a NoExecute taint of its node is not tolerated"}
	case span == forever:
		return drop(booked, "all NoExecute taints of its node are tolerated")
	case booked != nil:
		return keep(booked, now, "the taints are tolerated for a time")
	case span == 0:
		return decision{Do: evict, At: now, Why: "the taints are tolerated for zero seconds"}
	}
	return decision{Do: wait, At: now.Add(span), Why: "the taints are tolerated for " + span.String()}
}

func keep(booked *appointment, now time.Time, why string) decision {
	switch {
	case booked == nil:
		return decision{Do: leave, Why: why}
	case now.Before(booked.at):
		return decision{Do: wait, At: booked.at, Why: why}
	}
	return decision{Do: evict, At: booked.at, Why: why + ", which has passed"}
}

func drop(booked *appointment, why string) decision {
	if booked == nil {
		return decision{Do: leave, Why: why}
	}
	return decision{Do: cancel, Why: why}
}

// leaving reports whether a pod was deleted for a taint already.
func leaving(pod *corev1.Pod) bool {
	if pod.DeletionTimestamp == nil {
		return false
	}
	c := pods.Condition(pod, corev1.DisruptionTarget)
	return c != nil && c.Status == corev1.ConditionTrue && c.Reason == conditionReason
}

const (
	untolerated time.Duration = -1
	forever     time.Duration = -2
)

// toleranceOf is how long all of the taints are tolerated. For each taint the
// first toleration that matches counts; of the times of those, the shortest. One
// of zero or less means at once, and one that no duration can hold has no end.
func toleranceOf(taints []corev1.Taint, tolerations []corev1.Toleration, compares bool) time.Duration {
	span := forever
	for i := range taints {
		t := firstMatch(&taints[i], tolerations, compares)
		switch {
		case t == nil:
			return untolerated
		case t.TolerationSeconds == nil, *t.TolerationSeconds > int64(math.MaxInt64/time.Second):
		default:
			if s := seconds.Of(max(*t.TolerationSeconds, 0)); span == forever || s < span {
				span = s
			}
		}
	}
	return span
}

func firstMatch(taint *corev1.Taint, tolerations []corev1.Toleration, compares bool) *corev1.Toleration {
	for i := range tolerations {
		if tolerations[i].ToleratesTaint(klog.Logger{}, taint, compares) {
			return &tolerations[i]
		}
	}
	return nil
}

// noExecute returns the NoExecute taints of a node.
func noExecute(node *corev1.Node) []corev1.Taint {
	var taints []corev1.Taint
	for _, t := range node.Spec.Taints {
		if t.Effect == corev1.TaintEffectNoExecute {
			taints = append(taints, t)
		}
	}
	return taints
}

// sameNoExecute reports whether two nodes have the same NoExecute taints.
func sameNoExecute(a, b []corev1.Taint) bool {
	i, j := 0, 0
	for {
		i, j = nextNoExecute(a, i), nextNoExecute(b, j)
		if i == len(a) || j == len(b) {
			return i == len(a) && j == len(b)
		}
		if a[i].Key != b[j].Key || a[i].Value != b[j].Value {
			return false
		}
		i, j = i+1, j+1
	}
}

func nextNoExecute(taints []corev1.Taint, from int) int {
	for from < len(taints) && taints[from].Effect != corev1.TaintEffectNoExecute {
		from++
	}
	return from
}
