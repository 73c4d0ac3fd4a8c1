package daemonset

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/revisions"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// plan brings the set a step further: its pods are its own first, then its template has
// a revision, and then the nodes get what they are to have.
func plan(o *observed, now time.Time) act.Plan {
	switch {
	case selectsAll(o.set):
		return act.Plan{Why: "selects all pods", Stages: act.Stages(act.Event{On: o.set, Type: corev1.EventTypeWarning,
			Reason: "SelectingAll", Message: "This daemon set is selecting all pods. A non-empty selector is required."})}
	case o.set.DeletionTimestamp != nil:
		return act.Plan{Why: "being deleted: its pods belong to the garbage collector"}
	case o.malformed != nil:
		return act.Plan{Why: "the set cannot have pods: " + o.malformed.Error(), Terminal: o.malformed}
	case len(o.orphans) == 0:
		return o.claim(now)
	}
	var steps []act.Step
	for _, pod := range o.orphans {
		steps = append(steps, act.Adopt{Child: pod, Owner: o.set, Kind: kind, Selector: o.selector})
	}
	return act.Plan{
		Why: fmt.Sprintf("%d pods to adopt", len(steps)), Stages: []act.Stage{act.Each(steps...)},
		Then: func(r act.Results) act.Plan {
			if n := len(act.Succeeded[act.Adopt](r)); n > 0 {
				return act.Plan{Why: fmt.Sprintf("%d pods were adopted: waiting for the caches to show them", n)}
			}
			return o.claim(now)
		},
	}
}

// steps are what is to be written for the nodes. The first stage is what nodes need anyhow;
// what is refused of one kind holds up none of the others. The update and the history
// limit come after it: no old pod is deleted while another pod cannot be created.
func (d *draft) steps(obsolete []*appsv1.ControllerRevision) []act.Stage {
	var released, removed, rolled []act.Step
	for _, pod := range d.release {
		released = append(released, act.Release{Child: pod, Owner: d.set})
	}
	for _, r := range d.remove {
		if r.why == outdated && !d.q.surges {
			rolled = append(rolled, d.removal(r))
		} else {
			removed = append(removed, d.removal(r))
		}
	}
	first := d.abreast(act.Each(released...), act.SlowStart(d.creations()...), act.Together(removed...))
	return append(first, d.abreast(act.Together(rolled...), act.EachInTurn(revisions.Removals(obsolete)...))...)
}

// abreast is a stage of these, whatever becomes of the others; none if they are empty.
func (d *draft) abreast(stages ...act.Stage) []act.Stage {
	var parts []act.Step
	for _, stage := range stages {
		if len(stage.Steps) > 0 {
			parts = append(parts, act.Part{Of: d.set, Stages: []act.Stage{stage}})
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []act.Stage{act.Abreast(1, parts...)}
}

func (d *draft) creations() []act.Step {
	if len(d.create) == 0 {
		return nil
	}
	template, ref := podTemplate(d.set, d.asked.hash), metav1.NewControllerRef(d.set, kind)
	steps := make([]act.Step, len(d.create))
	for i, c := range d.create {
		pod := pods.FromTemplate(template, d.set, ref)
		pod.Spec.Affinity = pinnedTo(pod.Spec.Affinity, c.node)
		if !c.since.IsZero() {
			rejections.MarkSince(pod, c.since)
		}
		steps[i] = act.Create{Object: pod, Owner: d.set, Siblings: d.selector, Events: pods.Created(d.set)}
	}
	return steps
}

// removal deletes a pod, and records an event first when it ended by itself.
func (d *draft) removal(r removal) act.Step {
	remove := act.Delete{Of: r.pod, Paces: true, Events: pods.Deleted(d.set)}
	event := act.Event{On: d.set}
	switch r.why {
	case failed:
		event.Type, event.Reason = corev1.EventTypeWarning, "FailedDaemonPod"
		event.Message = fmt.Sprintf("Found failed daemon pod %s/%s on node %s, will try to kill it", r.pod.Namespace, r.pod.Name, r.node)
	case succeeded:
		event.Type, event.Reason = corev1.EventTypeNormal, "SucceededDaemonPod"
		event.Message = fmt.Sprintf("Found succeeded daemon pod %s/%s on node %s, will try to delete it", r.pod.Namespace, r.pod.Name, r.node)
	default:
		return remove
	}
	return act.Part{Of: r.pod, Stages: act.Stages(event, remove)}
}

// report writes the status if it differs. One that is only a step on the way can wait,
// but not while something is refused, as the next try may be minutes away. On a conflict
// it is put once more, because the pods were counted regardless of what changed.
func (d *draft) report(r act.Results) act.Step {
	status := statusOf(d.set, d.sums)
	status.Conditions = d.setback.condition(status.Conditions, d.now)
	if reported(d.set.Status, status) {
		return nil
	}
	_, failed := r.Failed()
	return act.Status{
		Of: d.set, Set: withStatus(status),
		Again: true, MayWait: failed == nil && underWay(d.set, status),
	}
}

// explain says in numbers how far the set has come, and what is done or waited for.
func (d *draft) explain() string {
	t, what := d.sums, "complete"
	switch {
	case d.rolled:
		what = fmt.Sprintf("rolling out: %d nodes get a new pod, %d lose an old one", len(d.create), len(d.remove))
	case !d.idle():
		what = fmt.Sprintf("%d nodes need a pod; %d pods are surplus or have ended", len(d.create), len(d.remove))
	case d.setback.node != "":
		what = fmt.Sprintf("node %s rejected its pod (%s) and is tried again at %s", d.setback.node, d.setback.reason, d.setback.due.UTC().Format(time.RFC3339))
	case t.available < t.desired:
		what = fmt.Sprintf("waiting for %d pods to become available", t.desired-t.available)
	case t.updated < t.desired && d.asked.rolls:
		what = fmt.Sprintf("waiting for room to replace the pods of %d nodes", t.desired-t.updated)
	case t.updated < t.desired:
		what = fmt.Sprintf("the old pods of %d nodes stay until they are deleted", t.desired-t.updated)
	}
	return fmt.Sprintf("%d pods available on %d nodes that should have one, %d at revision %s: %s", t.available, t.desired, t.updated, d.asked.hash, what)
}
