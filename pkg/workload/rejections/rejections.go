// Package rejections decides how soon pods are replaced that kubelets refuse to
// run: one for which the node lacks CPU, or that asks for what the node forbids.
// The scheduler may send the next one to the same node, so replacing each at once
// makes thousands of them.
//
// The first replacements are immediate. If they are rejected too, the next follow
// after 10 s, 20 s, 40 s and so on up to 5 minutes, each time half as many, until
// one is accepted. All of it follows from the pods that are there and their times
// of creation, so it is the same after a restart.
//
// Where each pod has a place of its own, an ordinal or a node, and goes before the
// next is made, it stays until that is due, and the next one carries since when the
// pods of its place are rejected (place.go).
//
// Everything here is pure: the pods and the time go in.
package rejections

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	podrules "github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

const (
	// firstDelay and longestDelay bound the time until the next try; each delay
	// is twice the one before.
	firstDelay   = 10 * time.Second
	longestDelay = 5 * time.Minute
	// memory is how long after the last rejection all are forgotten.
	memory = 2 * longestDelay
	// most is how many replacements are made at once.
	most = 32
	// window and spare bound the rejections that there are however often a pod is
	// accepted in between: in this time no more than wanted, and so many besides.
	window = 5 * time.Minute
	spare  = 64
)

// Rejected reports whether a kubelet has refused to run the pod: it has failed, for
// a reason, without a container that ever ran, and nobody wanted it gone.
func Rejected(pod *corev1.Pod) bool {
	if pod.Status.Phase != corev1.PodFailed || pod.Spec.NodeName == "" || pod.Status.Reason == "" ||
		pod.Status.Reason == "DeadlineExceeded" || Accepted(pod) {
		return false
	}
	c := podrules.Condition(pod, corev1.DisruptionTarget)
	return c == nil || c.Status != corev1.ConditionTrue
}

// Accepted reports whether a container of the pod ever ran.
func Accepted(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, Ran) || slices.ContainsFunc(pod.Status.InitContainerStatuses, Ran)
}

// Ran reports whether the container has run at some time.
func Ran(c corev1.ContainerStatus) bool {
	return c.State.Running != nil || c.State.Terminated != nil || c.LastTerminationState.Terminated != nil || c.RestartCount > 0
}

// Allowance is what the rejections of an owner's pods mean for the next ones.
type Allowance struct {
	// Allowed is how many pods may be made now.
	Allowed int
	// Until is when more may be made if none is allowed now.
	Until time.Time
	// InARow is how many pods were rejected since one was accepted; 0 when there
	// is nothing to hold back for.
	InARow int
	// Reason is that of the latest rejection.
	Reason string
}

// Message says why pods are held back.
func (v Allowance) Message() string {
	return fmt.Sprintf("nodes reject the pods (%d in a row, the last with reason %s)", v.InARow, v.Reason)
}

// AllowanceFor counts all pods of an owner, also those that have ended. wanted is how many
// of them the owner wants to run.
func AllowanceFor(all []*corev1.Pod, wanted int, now time.Time) Allowance {
	rejected := remembered(all, now)
	streak, tried, pending, served := sinceAccepted(all, rejected)
	free := Allowance{Allowed: math.MaxInt}
	if len(rejected) == 0 || served >= wanted {
		return free
	}
	v := free
	if len(streak) > 0 {
		latest := streak[len(streak)-1]
		slots := wanted - served
		allowed, delay := next(min(slots, most), max(0, pending+len(streak)-slots))
		v = Allowance{Allowed: allowed, InARow: len(streak), Reason: latest.Status.Reason}
		if due := tried.Add(delay); now.Before(due) {
			v.Allowed, v.Until = 0, due
		}
	}
	// All pods that are on their way may be rejected, too.
	return v.within(rejected, wanted+spare-min(pending, wanted), now)
}

// within allows no more than lead to a limit of rejections in the window.
func (v Allowance) within(rejected []*corev1.Pod, limit int, now time.Time) Allowance {
	recent := rejected
	for len(recent) > 0 && !now.Before(recent[0].CreationTimestamp.Add(window)) {
		recent = recent[1:]
	}
	if room := limit - len(recent); room > 0 {
		v.Allowed = min(v.Allowed, room)
		return v
	}
	latest := recent[len(recent)-1]
	v.Allowed, v.InARow, v.Reason = 0, max(v.InARow, 1), latest.Status.Reason
	if until := recent[len(recent)-limit].CreationTimestamp.Add(window); until.After(v.Until) {
		v.Until = until
	}
	return v
}

// next is how many replacements may be made after so many, and how long after
// the latest. The first round is at once, each other one half as large.
func next(first, made int) (allowed int, delay time.Duration) {
	size, total := first, first
	for made >= total {
		size = (size + 1) / 2
		total += size
		if delay = min(2*delay, longestDelay); delay == 0 {
			delay = firstDelay
		}
		if size == 1 && delay == longestDelay {
			return 1, delay
		}
	}
	return total - made, delay
}

// remembered are the rejected pods in the order of their creation, without those
// that are followed by a long time of quiet.
func remembered(all []*corev1.Pod, now time.Time) []*corev1.Pod {
	var rejected []*corev1.Pod
	for _, pod := range all {
		if Rejected(pod) {
			rejected = append(rejected, pod)
		}
	}
	slices.SortFunc(rejected, func(a, b *corev1.Pod) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	after := now
	for i := len(rejected) - 1; i >= 0; i-- {
		at := rejected[i].CreationTimestamp.Time
		if after.Sub(at) > memory {
			return rejected[i+1:]
		}
		after = at
	}
	return rejected
}

// sinceAccepted are the rejected pods that were made after the latest one that
// was accepted, and when the last one was made that was not. pending counts the active
// pods that are neither accepted nor rejected yet, served those that run.
func sinceAccepted(all, rejected []*corev1.Pod) (streak []*corev1.Pod, tried time.Time, pending, served int) {
	var accepted time.Time
	for _, pod := range all {
		at, ok := pod.CreationTimestamp.Time, Accepted(pod)
		if ok && at.After(accepted) {
			accepted = at
		}
		switch {
		case !podrules.Active(pod):
		case ok:
			served++
		default:
			pending++
			if at.After(tried) {
				tried = at
			}
		}
	}
	streak = rejected
	for len(streak) > 0 && !streak[0].CreationTimestamp.After(accepted) {
		streak = streak[1:]
	}
	if len(streak) > 0 {
		if at := streak[len(streak)-1].CreationTimestamp.Time; at.After(tried) {
			tried = at
		}
	}
	return streak, tried, pending, served
}
