package replicas

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/rejections"
)

// burst is how many pods one reconcile creates or deletes at most.
const burst = 500

// Observed is what the decision is made on.
type Observed struct {
	Set *Set
	// Active are the set's pods that have neither ended nor been asked to.
	Active []*corev1.Pod
	// Terminating are the set's pods that have been asked to end.
	Terminating []*corev1.Pod
	// OnNode counts by node the active pods of the set and of its siblings. It
	// is only filled in when there are too many pods, and empty without siblings.
	OnNode map[string]int
	// Judged is what pods that kubelets rejected mean for the next ones; nil when
	// every pod is replaced at once.
	Judged *rejections.Verdict
}

// Plan is how many pods to create, or which to delete, and why.
type Plan struct {
	Create int
	Delete []*corev1.Pod
	Why    string
	// Until is when the next pod is made that is missing now and held back.
	Until time.Time
}

// idle tells whether there is nothing to do.
func (p Plan) idle() bool { return p.Create == 0 && len(p.Delete) == 0 }

// decide plans the way to the wanted number of pods.
func decide(o Observed, byCost bool, now time.Time) Plan {
	short := o.Set.Replicas - len(o.Active)
	switch {
	case o.Set.Object.GetDeletionTimestamp() != nil:
		return Plan{Why: "being deleted: its pods belong to the garbage collector"}
	case short > 0:
		return o.holdBack(Plan{Create: min(short, burst), Why: fmt.Sprintf("%d short of %d", short, o.Set.Replicas)})
	case short < 0:
		return Plan{
			Delete: victims(o.Active, min(-short, burst), ranking{onNode: o.OnNode, byCost: byCost, now: now}),
			Why:    fmt.Sprintf("%d more than %d", -short, o.Set.Replicas),
		}
	}
	return Plan{Why: fmt.Sprintf("%d as wanted", o.Set.Replicas)}
}

// nextLook is how long until the next ready pod becomes available, which no
// event tells; zero if none will.
func nextLook(o Observed, now time.Time) time.Duration {
	var soonest time.Duration
	for _, pod := range o.Active {
		if wait := pods.UntilAvailable(pod, o.Set.MinReadySeconds, now); wait > 0 && (soonest == 0 || wait < soonest) {
			soonest = wait
		}
	}
	return soonest
}

// sooner is the shorter of two waits, of which zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// shown is how many pods an explanation names.
const shown = 10

// explanation is a plan as the debug endpoint shows it. It holds no pods,
// because it is kept for long.
type explanation struct {
	Create int      `json:"create,omitempty"`
	Delete int      `json:"delete,omitempty"`
	First  []string `json:"first,omitempty"`
	Why    string   `json:"why"`
}

func (p Plan) explain() explanation {
	e := explanation{Create: p.Create, Delete: len(p.Delete), Why: p.Why}
	for _, pod := range p.Delete[:min(len(p.Delete), shown)] {
		e.First = append(e.First, pod.Name)
	}
	return e
}

// owns tells whether the set controls the pod.
func (s *Set) owns(pod *corev1.Pod) bool {
	ref := metav1.GetControllerOfNoCopy(pod)
	return ref != nil && ref.UID == s.Object.GetUID()
}
