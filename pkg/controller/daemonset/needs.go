package daemonset

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// question is what each node is considered by: the set, at this moment.
type question struct {
	placement
	selector   labels.Selector
	minReady   int32
	hash       string // of the present revision
	generation string // of the template, for pods from the days before revisions
	rolls      bool   // old pods are replaced
	surges     bool   // new pods are made beside old ones
	now        time.Time
}

// view is what was observed of a node.
type view struct {
	name string
	node *corev1.Node  // nil if there is none of this name
	pods []*corev1.Pod // all there that name the set as their controller
	// blocked is how long the next failed pod has to wait before it goes.
	blocked time.Duration
	retry   retry
}

// reason is why a pod goes.
type reason int

const (
	unwanted reason = iota
	failed
	succeeded
	outdated
)

// removal is a pod to delete.
type removal struct {
	pod  *corev1.Pod
	node string
	why  reason
}

// needs are what is to be done about a node.
type needs struct {
	nodeState
	create  bool
	since   time.Time // with create: since when the node rejects pods, if it does
	remove  []removal
	release []*corev1.Pod
	step    step
	old     *corev1.Pod // that the rollout may take, if there is one
}

// acts reports whether the node is not as it should be. It is looked at again then.
func (v *needs) acts() bool {
	return v.create || len(v.remove) > 0 || len(v.release) > 0 || v.step != step{}
}

// needsOf returns what is to be done about a node.
func (q *question) needsOf(n *view) needs {
	v := needs{nodeState: nodeState{fit: q.fits(n.node), troubled: n.retry.troubled}}
	here, rejected := v.setAside(q, n, v.sort(q, n))
	if len(here) > 0 {
		v.health, v.updated = q.healthOf(here[0]), q.isNew(here[0])
	}
	for _, pod := range here {
		if wait := pods.UntilAvailable(pod, q.minReady, q.now); wait > 0 {
			v.lookAfter(q, wait)
		}
	}
	switch {
	case v.fit == fitAbsent:
		// The pods of a node that is gone are for the garbage collector of pods,
		// which does not know those that are still on their way to it.
		v.removeAll(n.name, slices.DeleteFunc(slices.Clone(here), pods.Scheduled))
	case v.fit == fitOpen && len(here) == 0:
		v.create = true
	case v.fit == fitClosed:
		v.removeAll(n.name, here)
	default:
		v.tidy(q, n, here, rejected)
		if rejected != nil {
			v.follow(q, n, here)
		}
	}
	v.troubled = v.troubled && v.fit == fitOpen
	if q.rolls && (len(here) > 0 || v.fit == fitOpen) {
		v.roll(q, here)
	}
	return v
}

// sort returns the pods that count, the first one first, and notes those to let go. A
// pod that has ended and is being deleted counts no more, whatever holds it, but
// its revision stays as long as it is there.
func (v *needs) sort(q *question, n *view) []*corev1.Pod {
	var here []*corev1.Pod
	for _, pod := range n.pods {
		if !q.selector.Matches(labels.Set(pod.Labels)) {
			v.release = append(v.release, pod)
			continue
		}
		if n.name == "" {
			continue
		}
		v.hashes = append(v.hashes, pod.Labels[hashLabel])
		if !over(pod) {
			here = append(here, pod)
		}
	}
	slices.SortFunc(here, first)
	return here
}

// over reports whether the pod has ended and is being deleted.
func over(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil && pods.Terminal(pod) }

// first orders the pods of a node by which is kept: one that has its node, the
// oldest.
func first(a, b *corev1.Pod) int {
	return cmp.Or(pods.FalseFirst(!pods.Scheduled(a), !pods.Scheduled(b)), a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

func (v *needs) removeAll(node string, all []*corev1.Pod) {
	for _, pod := range all {
		if pod.DeletionTimestamp == nil {
			v.remove = append(v.remove, removal{pod, node, unwanted})
		}
	}
}

// tidy removes pods that have ended, and those beyond one. While a template goes
// out with a surge an old one stays until the new one can do its work.
// One that the node rejected is left to others.
func (v *needs) tidy(q *question, n *view, here []*corev1.Pod, rejected *corev1.Pod) {
	var running []*corev1.Pod
	ended, held := false, rejected != nil
	for _, pod := range here {
		switch {
		case pod.DeletionTimestamp != nil || pod == rejected:
		case pod.Status.Phase == corev1.PodFailed:
			if n.blocked > 0 {
				held = true
				v.lookAfter(q, n.blocked)
			} else if !ended {
				ended = true // the next one has to wait for what follows from this
				v.remove = append(v.remove, removal{pod, n.name, failed})
			}
		case pod.Status.Phase == corev1.PodSucceeded:
			v.remove = append(v.remove, removal{pod, n.name, succeeded})
		default:
			running = append(running, pod)
		}
	}
	switch {
	case len(running) == 0:
		v.create = q.surges && v.fit == fitOpen && !held // one that ends is no obstacle
	case !q.surges:
		v.removeAll(n.name, running[1:])
	case len(running) > 1:
		v.removeAll(n.name, q.surplus(running))
	}
}

// surplus are the pods beyond one new and one old, and the old one too when it
// does not work or the new one does.
func (q *question) surplus(running []*corev1.Pod) []*corev1.Pod {
	var newest, oldest *corev1.Pod
	var more []*corev1.Pod
	for _, pod := range running {
		switch isNew := pod.Labels[hashLabel] == q.hash; {
		case isNew && newest == nil:
			newest = pod
		case !isNew && oldest == nil:
			oldest = pod
		default:
			more = append(more, pod)
		}
	}
	if newest != nil && oldest != nil && (!pods.Ready(oldest) || pods.Available(newest, q.minReady, q.now)) {
		more = append(more, oldest)
	}
	return more
}

// isNew reports whether the pod is of the present revision.
func (q *question) isNew(pod *corev1.Pod) bool {
	return pod.Labels[hashLabel] == q.hash ||
		q.generation != "" && pod.Labels[generationLabel] == q.generation
}

func (v *needs) lookAfter(q *question, wait time.Duration) {
	if at := q.now.Add(wait); v.look.IsZero() || at.Before(v.look) {
		v.look = at
	}
}
