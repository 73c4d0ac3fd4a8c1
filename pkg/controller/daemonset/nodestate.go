package daemonset

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// fit is what a node means for the pods of a template.
type fit int

const (
	fitAbsent fit = iota // there is no such node
	fitClosed            // it is to have no pod
	fitKeeps             // it is to have no new one, and one that it has may stay
	fitOpen              // it is to have one
)

// health is how well the first pod of a node is; each state includes those before it.
type health int

const (
	healthNone health = iota
	healthNotReady
	healthReady
	healthAvailable
)

// healthOf returns that of the pod that counts for a node.
func (q *question) healthOf(pod *corev1.Pod) health {
	switch {
	case pods.Available(pod, q.minReady, q.now):
		return healthAvailable
	case pods.Ready(pod):
		return healthReady
	}
	return healthNotReady
}

// rollout is what a node means for the rollout of a template.
type rollout int

const (
	rolloutIdle      rollout = iota // nothing, or nothing is rolled out
	rolloutDown                     // without a working pod
	rolloutDone                     // a pod works, and there is nothing to wait for
	rolloutWaiting                  // an old pod works, and is replaced when the bounds allow
	rolloutLeaving                  // an old pod works, and the node is to have no new one
	rolloutJoining                  // beside an old pod that works there is a new one that does not yet
	rolloutUnsettled                // beside an old pod that does not work either, or it is not clear which is which
)

// rollouts says what each state counts for: within maxUnavailable, within maxSurge, and
// among the nodes that have a working pod.
var rollouts = [...]struct{ down, surging, serving int }{
	rolloutIdle: {0, 0, 0}, rolloutDown: {1, 0, 0}, rolloutDone: {0, 0, 1}, rolloutWaiting: {0, 0, 1}, rolloutLeaving: {0, 0, 1}, rolloutJoining: {0, 1, 1}, rolloutUnsettled: {0, 1, 0},
}

// nodeState is what a set makes of a node, as far as it is remembered.
type nodeState struct {
	fit     fit
	health  health
	updated bool // the first pod is of the present revision
	rollout rollout

	// troubled: the node rejects pods. Due is when it is tried again while the last one
	// is held, and why its reason.
	troubled bool
	due      time.Time
	why      string

	// hashes are the revisions of the pods.
	hashes []string
	// look is when time alone changes the state; zero if it does not.
	look time.Time
}

// counts reports whether there is anything to remember.
func (s *nodeState) counts() bool {
	return s.fit == fitOpen || s.health != healthNone || len(s.hashes) > 0 || !s.look.IsZero()
}

// sums are over nodes.
type sums struct {
	desired, current, misscheduled, ready, available, updated int
	// troubled are those that reject pods.
	troubled int
	// Of the rollout.
	down, surging, serving int
}

// add counts a node in or out.
func (t *sums) add(s *nodeState, by int) {
	if s.fit == fitOpen {
		t.desired += by
		switch s.health {
		case healthAvailable:
			t.available += by
			fallthrough
		case healthReady:
			t.ready += by
			fallthrough
		case healthNotReady:
			t.current += by
		}
		if s.updated {
			t.updated += by
		}
	} else if s.fit != fitAbsent && s.health != healthNone {
		t.misscheduled += by
	}
	if s.troubled {
		t.troubled += by
	}
	of := rollouts[s.rollout]
	t.down += by * of.down
	t.surging += by * of.surging
	t.serving += by * of.serving
}

// count adds to the number of pods of each revision.
func count(all map[string]int, hashes []string, by int) {
	for _, hash := range hashes {
		if all[hash] += by; all[hash] <= 0 {
			delete(all, hash)
		}
	}
}
