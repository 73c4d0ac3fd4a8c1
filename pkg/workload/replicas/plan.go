package replicas

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// burst is how many pods one reconcile creates or deletes at most.
const burst = 500

// plan brings the set to the number of pods it asks for. Pods are adopted and let
// go first, because whether there are enough depends on it.
func plan(o Observed, now time.Time) act.Plan {
	if err := o.Set.Check(); err != nil {
		return act.Plan{Why: "the set cannot have pods", Terminal: fmt.Errorf("read %s: %w", o.Form.Type().Kind, err)}
	}
	var claims []act.Step
	for _, pod := range o.Claims.Adopt {
		claims = append(claims, act.Adopt{Child: pod, Owner: o.Set.Object, Kind: o.Form.Type(), Selector: o.Set.Selector})
	}
	for _, pod := range o.Claims.Release {
		claims = append(claims, act.Release{Child: pod, Owner: o.Set.Object})
	}
	if len(claims) == 0 {
		return o.scale(o.Claims.Owned, now)
	}
	return act.Plan{
		Why:    fmt.Sprintf("%d pods to adopt, %d to release", len(o.Claims.Adopt), len(o.Claims.Release)),
		Stages: []act.Stage{act.Each(claims...)},
		Then:   func(r act.Results) act.Plan { return o.scale(act.Owned(o.Claims.Owned, r), now) },
	}
}

// scale makes the pods that are missing, or takes away those that are too many, and
// reports.
func (o Observed) scale(active []*corev1.Pod, now time.Time) act.Plan {
	wanted := o.decide(active, now)
	p := act.Plan{
		Why:          wanted.Why,
		RequeueAfter: act.Soonest(pods.NextAvailable(active, o.Set.MinReadySeconds, now), wanted.wait(now)), Due: true,
		Status: func(r act.Results) act.Step {
			status := statusOf(o, active, failureOf(r), now)
			status.Conditions = withBackoff(status.Conditions, o.Allowance, wanted, now)
			return o.report(status, r)
		},
	}
	switch {
	case wanted.Create > 0:
		p.Stages = []act.Stage{act.SlowStart(o.creations(wanted.Create)...)}
	case len(wanted.Delete) > 0:
		p.Stages = []act.Stage{act.Together(o.deletions(wanted.Delete)...)}
		p.Counts = func(r act.Results) []act.Count {
			var counts []act.Count
			for _, ratio := range ageRatios(active, wanted.Delete, r.Held(), now) {
				counts = append(counts, act.Count{Observes: deletionAgeRatio, Value: ratio})
			}
			return counts
		}
	}
	return p
}

func (o Observed) creations(count int) []act.Step {
	steps := make([]act.Step, count)
	for i := range steps {
		steps[i] = act.Create{
			Object: pods.FromTemplate(o.Set.Template, o.Set.Object, metav1.NewControllerRef(o.Set.Object, o.Form.Type())),
			Owner:  o.Set.Object, Siblings: o.Set.Selector, Events: pods.Created(o.Set.Object),
		}
	}
	return steps
}

func (o Observed) deletions(victims []*corev1.Pod) []act.Step {
	steps := make([]act.Step, len(victims))
	for i, pod := range victims {
		steps[i] = act.Delete{Of: pod, Events: pods.Deleted(o.Set.Object)}
	}
	return steps
}

// report writes the status if it differs. One that is only a step on the way can
// wait, but not while pods cannot be made or deleted, as the next try may be minutes
// away. On a conflict it is put once more, because the pods were counted regardless
// of what changed.
func (o Observed) report(status appsv1.ReplicaSetStatus, r act.Results) act.Step {
	if reported(o.Set.Status, status) {
		return nil
	}
	_, failed := r.Failed()
	return act.Status{
		Of: o.Set.Object, Set: put(o.Form, status),
		Again: true, MayWait: failed == nil && underWay(o.Set, status),
	}
}

// change is how many pods to create, or which to delete, and why.
type change struct {
	Create int
	Delete []*corev1.Pod
	Why    string
	// Until is when the next pod is made that is missing now and held back.
	Until time.Time
}

// decide returns the way from these pods to the wanted number.
func (o Observed) decide(active []*corev1.Pod, now time.Time) change {
	short := o.Set.Replicas - len(active)
	switch {
	case o.Set.Object.GetDeletionTimestamp() != nil:
		return change{Why: "being deleted: its pods belong to the garbage collector"}
	case short > 0:
		return o.holdBack(change{Create: min(short, burst), Why: fmt.Sprintf("%d pods missing of %d", short, o.Set.Replicas)})
	case short < 0:
		return change{
			Delete: victims(active, min(-short, burst), ranking{onNode: o.OnNode, byCost: o.ByCost, now: now}),
			Why:    fmt.Sprintf("%d pods more than %d", -short, o.Set.Replicas),
		}
	}
	return change{Why: fmt.Sprintf("%d pods, as wanted", o.Set.Replicas)}
}
