package rejections

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	podrules "github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// Hold returns how many of the wanted pods may be made now and, if none may, until
// when they are held back. Why is empty when nothing is held back. Without a verdict
// all are made at once.
func (v *Verdict) Hold(wanted int) (now int, until time.Time, why string) {
	switch {
	case v == nil || v.Allowed >= wanted:
		return wanted, time.Time{}, ""
	case v.Allowed > 0:
		return v.Allowed, time.Time{}, v.why()
	}
	return 0, v.Until, v.why()
}

// Over reports whether there is nothing to hold back for.
func (v *Verdict) Over() bool { return v == nil || v.InARow == 0 }

// Message is that of the condition of an owner whose pods are held back until then.
func (v *Verdict) Message(until time.Time) string {
	return fmt.Sprintf("%s; the next pod is created at %s", v.why(), until.UTC().Format(time.RFC3339))
}

func (v *Verdict) why() string {
	return fmt.Sprintf("nodes reject the pods (%d in a row, the last with reason %s)", v.InARow, v.Reason)
}

// Place is where an owner wants one pod, such as an ordinal.
type Place struct {
	// Pod is the one that is there, nil if there is none.
	Pod *corev1.Pod
	// Renewed: what is made there next is another pod than that, which may be accepted.
	Renewed bool
}

// Held is what rejected pods mean for an owner with places. A rejected pod stays
// until its place is due for the next one, and goes only after the owner's condition
// has told since when pods are rejected. The next one gets that from there, so that
// it is not lost between the two, whatever happens to the process.
type Held struct {
	// Since is when the first pod was rejected by the condition; zero without one.
	Since time.Time
	// Due is when the rejected pods go, by name.
	Due map[string]time.Time
	// Next is the one that goes first; nil if none is there.
	Next *corev1.Pod
	// Over: no pod is waited for any more.
	Over bool
}

// HoldPlaces looks at the pods in their places, of an owner that has told of
// rejections since then.
func HoldPlaces(places []Place, since time.Time) *Held {
	h := &Held{Since: since, Due: map[string]time.Time{}}
	var rejected []Place
	troubled, missing, tried, accepted := 0, 0, 0, false
	for _, place := range places {
		if place.Pod == nil {
			missing++
			continue
		}
		marked, again := SinceOf(place.Pod)
		switch {
		case !Troubled(place.Pod):
			accepted = accepted || again && marked.Equal(since) && podrules.Active(place.Pod)
			continue
		case Rejected(place.Pod) && place.Pod.DeletionTimestamp == nil:
			rejected = append(rejected, place)
		}
		if troubled++; again {
			tried++
		}
	}
	if !since.IsZero() {
		tried += missing
	}
	for _, place := range rejected {
		if _, again := SinceOf(place.Pod); !again {
			tried++
		}
		due := Due(place.Pod, tried, troubled)
		if place.Renewed {
			due = place.Pod.CreationTimestamp.Time
		}
		h.Due[place.Pod.Name] = due
		if h.Next == nil || due.Before(h.Due[h.Next.Name]) {
			h.Next = place.Pod
		}
	}
	h.Over = troubled == 0 && (missing == 0 || accepted)
	return h
}

// Keeps returns why a pod that has ended stays still; empty if it does not.
func (h *Held) Keeps(pod *corev1.Pod, now time.Time) string {
	if h == nil {
		return ""
	}
	due, rejected := h.Due[pod.Name]
	switch {
	case !rejected:
		return ""
	case h.Since.IsZero():
		return pod.Name + " was rejected by its node; writing the condition before it is replaced"
	case now.Before(due):
		return pod.Name + " was rejected by its node, and is replaced at " + due.UTC().Format(time.RFC3339)
	}
	return ""
}

// Mark gives a new pod the record of those that were rejected.
func (h *Held) Mark(pod *corev1.Pod) {
	if h != nil && !h.Over && !h.Since.IsZero() {
		MarkSince(pod, h.Since)
	}
}

// Wait is how long until the next rejected pod goes; zero if time alone does nothing.
func (h *Held) Wait(now time.Time) time.Duration {
	if h == nil || h.Next == nil || h.Since.IsZero() {
		return 0
	}
	return max(h.Due[h.Next.Name].Sub(now), 0)
}

// Message is that of the condition; empty when it has nothing new to tell.
func (h *Held) Message() string {
	if h == nil || h.Next == nil {
		return ""
	}
	return Message(len(h.Due), h.Next.Name, h.Next.Status.Reason, h.Due[h.Next.Name])
}

// Ended reports whether the condition goes.
func (h *Held) Ended() bool { return h == nil || h.Over }
