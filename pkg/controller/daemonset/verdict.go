package daemonset

import (
	"cmp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/kube-kcm/kube-controller-manager/pkg/pods"
)

// question is what each node is judged by: the set, at this moment.
type question struct {
	placement
	selector   labels.Selector
	minReady   int32
	hash       string // of the present revision
	generation string // of the template, for pods from the days before revisions
	rolls      bool   // old pods are replaced
	surges     bool   // new pods are made beside old ones
	now        time.Time
	// blocked is how long the next failed pod on a node has to wait.
	blocked func(node string) time.Duration
	// patience replaces pods that nodes reject ever more rarely; nil without that.
	patience *patience
}

// stance is how a set stands to a node, as far as it is remembered.
type stance struct {
	exists      bool // the node does
	runs, stays bool // the node is to have a pod; one that it has may stay
	scheduled   bool // it has one, whatever its state
	// Of the first pod.
	ready, available, updated bool

	// troubled tells that the node rejects pods; due is when it is tried again while
	// the last one is held, and why its reason.
	troubled bool
	due      time.Time
	why      string

	standing
	// hashes are the revisions of the pods.
	hashes []string
	// look is when time alone changes the verdict; zero if it does not.
	look time.Time
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

// verdict is what is to be done about a node.
type verdict struct {
	stance
	create  bool
	since   time.Time // with create: since when the node rejects pods, if it does
	remove  []removal
	release []*corev1.Pod
	step    step
	old     *corev1.Pod // of a node that waits or departs
}

// acts tells whether the node is not as it should be. It is judged again then.
func (v *verdict) acts() bool {
	return v.create || len(v.remove) > 0 || len(v.release) > 0 || v.step != step{}
}

// judge says what to do about the node of this name, which is nil if it does not
// exist, with all pods there that name the set as their controller.
func (q *question) judge(name string, node *corev1.Node, all []*corev1.Pod) verdict {
	v := verdict{stance: stance{exists: node != nil}}
	v.runs, v.stays = q.fits(node)
	here, rejected := v.setAside(q, name, v.sort(q, name, all))
	v.scheduled = len(here) > 0
	if v.scheduled {
		first := here[0]
		v.ready = pods.Ready(first)
		v.available = pods.Available(first, q.minReady, q.now)
		v.updated = q.isNew(first)
	}
	for _, pod := range here {
		if wait := pods.UntilAvailable(pod, q.minReady, q.now); wait > 0 {
			v.lookAfter(q, wait)
		}
	}
	switch {
	case node == nil:
		// The pods of a node that is gone are for the garbage collector of pods,
		// which does not know those that are still on their way to it.
		v.removeAll(name, slices.DeleteFunc(slices.Clone(here), pods.Scheduled))
	case v.runs && !v.scheduled:
		v.create = true
	case v.stays:
		v.tidy(q, name, here, rejected)
		if rejected != nil {
			v.follow(q, name, rejected, here)
		}
	default:
		v.removeAll(name, here)
	}
	v.troubled = v.troubled && v.runs
	if q.rolls && (v.scheduled || v.runs) {
		v.standing, v.step = q.roll(v.runs, here)
		if v.waits || v.departs {
			_, v.old, _ = q.split(here)
		}
	}
	return v
}

// sort tells the pods that count, the first one first, from those to let go. A
// pod that has ended and is being deleted counts no more, whatever holds it, but
// its revision stays as long as it is there.
func (v *verdict) sort(q *question, name string, all []*corev1.Pod) []*corev1.Pod {
	var here []*corev1.Pod
	for _, pod := range all {
		if !q.selector.Matches(labels.Set(pod.Labels)) {
			v.release = append(v.release, pod)
			continue
		}
		if name == "" {
			continue
		}
		v.hashes = append(v.hashes, pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey])
		if pod.DeletionTimestamp == nil || !pods.Terminal(pod) {
			here = append(here, pod)
		}
	}
	slices.SortFunc(here, first)
	return here
}

// first orders the pods of a node by which is kept: one that has its node, the
// oldest.
func first(a, b *corev1.Pod) int {
	if pods.Scheduled(a) != pods.Scheduled(b) {
		if pods.Scheduled(a) {
			return -1
		}
		return 1
	}
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
}

func (v *verdict) removeAll(node string, all []*corev1.Pod) {
	for _, pod := range all {
		if pod.DeletionTimestamp == nil {
			v.remove = append(v.remove, removal{pod, node, unwanted})
		}
	}
}

// tidy removes pods that have ended, and those beyond one. While a template goes
// out with a surge an old one stays until the new one can do its work.
// One that the node rejected is left to others.
func (v *verdict) tidy(q *question, name string, here []*corev1.Pod, rejected *corev1.Pod) {
	var running []*corev1.Pod
	ended, held := false, rejected != nil
	for _, pod := range here {
		switch {
		case pod.DeletionTimestamp != nil || pod == rejected:
		case pod.Status.Phase == corev1.PodFailed:
			if wait := q.blocked(name); wait > 0 {
				held = true
				v.lookAfter(q, wait)
			} else if !ended {
				ended = true // the next one has to wait for what follows from this
				v.remove = append(v.remove, removal{pod, name, failed})
			}
		case pod.Status.Phase == corev1.PodSucceeded:
			v.remove = append(v.remove, removal{pod, name, succeeded})
		default:
			running = append(running, pod)
		}
	}
	switch {
	case len(running) == 0:
		v.create = q.surges && v.runs && !held // one that ends is no obstacle
	case !q.surges:
		v.removeAll(name, running[1:])
	case len(running) > 1:
		v.removeAll(name, q.surplus(running))
	}
}

// surplus are the pods beyond one new and one old, and the old one too when it
// does not work or the new one does.
func (q *question) surplus(running []*corev1.Pod) []*corev1.Pod {
	var newest, oldest *corev1.Pod
	var more []*corev1.Pod
	for _, pod := range running {
		switch isNew := pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == q.hash; {
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

// isNew tells whether the pod is of the present revision.
func (q *question) isNew(pod *corev1.Pod) bool {
	return pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] == q.hash ||
		q.generation != "" && pod.Labels[generationLabel] == q.generation
}

func (v *verdict) lookAfter(q *question, wait time.Duration) {
	if at := q.now.Add(wait); v.look.IsZero() || at.Before(v.look) {
		v.look = at
	}
}
