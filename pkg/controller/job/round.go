package job

import (
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// round is one turn of a Job, in four phases, each a plan from the results of those
// before: pods are made or taken away, the status notes those that have ended, they
// lose their finalizers, the status counts them. Whatever goes wrong in between, the
// next turn finds what is left to do.
type round struct {
	observed
	view   *view
	change change
}

// retrack gives pods their finalizer back, before anything else is done.
func (r round) retrack() act.Plan {
	if len(r.change.retrack) == 0 {
		return r.pods(r.refused)
	}
	var steps []act.Step
	for _, pod := range r.change.retrack {
		steps = append(steps, track(pod))
	}
	return act.Plan{
		Why:    fmt.Sprintf("%d running pods have lost the finalizer: adding it again, so that they are counted", len(steps)),
		Stages: []act.Stage{act.SlowStart(steps...)}, Then: r.pods, Else: r.pods,
	}
}

// pods makes pods or takes them away. What ended is counted whatever becomes of that.
func (r round) pods(before act.Results) act.Plan {
	var stage act.Stage
	switch c := r.change; {
	case c.conclusion != nil:
		stage = act.Together(r.deletions(c.end, true)...)
	case len(c.remove) > 0:
		stage = act.Together(r.deletions(c.remove, false)...)
	default: // in growing batches, so that a refusal that concerns all of them costs a few requests
		stage = act.SlowStart(r.creations(c.create)...)
	}
	if len(stage.Steps) == 0 {
		return r.note(before)
	}
	return act.Plan{Why: r.change.why, Stages: []act.Stage{stage}, Then: r.note, Else: r.note, Counts: r.view.countCreations}
}

func (r round) creations(indexes []int) []act.Step {
	ref := metav1.NewControllerRef(r.job, kind)
	steps := make([]act.Step, len(indexes))
	for i, index := range indexes {
		steps[i] = act.Create{Object: r.newPod(ref, index), Owner: r.job, Siblings: r.selector, Events: pods.Created(r.job)}
	}
	return steps
}

// newPod is the pod of an index, or one without.
func (r round) newPod(ref *metav1.OwnerReference, index int) *corev1.Pod {
	pod := newPod(r.job, ref, index, r.view.held[index])
	if r.podGroup != "" {
		pod.Spec.SchedulingGroup = &corev1.PodSchedulingGroup{PodGroupName: &r.podGroup}
	}
	return pod
}

// deletions delete pods that are counted, or are not to be. Then the finalizer goes
// first, because a pod that is deleted and has it counts as failed. It stays on a pod
// that has changed, which may have succeeded meanwhile.
func (r round) deletions(victims []*corev1.Pod, counted bool) []act.Step {
	steps := make([]act.Step, len(victims))
	for i, pod := range victims {
		steps[i] = act.Delete{Of: pod, Events: pods.Deleted(r.job)}
		if !counted && tracked(pod) {
			steps[i] = act.Part{Of: pod, Stages: act.Stages(untrack(pod, true), steps[i])}
		}
	}
	return steps
}

// carried is what became of the pods that were to be made or taken away.
func (r round) carried(results act.Results) carried {
	did := carried{at: results.LastAt(r.view.now), until: r.change.until, ending: r.change.conclusion != nil}
	for _, result := range results {
		switch s := result.Step.(type) {
		case act.Create:
			if _, is := s.Object.(*corev1.Pod); is && result.Became == act.Done {
				did.created++
			}
			did.namespaceEnds = did.namespaceEnds || result.Became == act.Ending
		case act.Delete:
			if result.Became != act.Done && result.Became != act.WasGone {
				continue
			}
			did.deleted++
			if pods.Ready(s.Of.(*corev1.Pod)) {
				did.deletedReady++
			}
		}
	}
	switch {
	case r.change.conclusion == nil:
		did.conclusion = completed(r.view, len(r.view.active)+did.created-did.deleted)
	case did.deleted == len(r.change.end):
		did.conclusion = r.change.conclusion
	}
	return did
}

// note writes down the pods that have ended, before they lose their finalizers, and
// what else the status says by now. How many pods are ready can wait a little, unless
// the Job fails and the next try may be minutes away.
func (r round) note(results act.Results) act.Plan {
	t := begin(r.view, r.carried(results))
	_, err := results.Failed()
	failing := amiss(results)
	status := act.Status{Of: r.job, Set: put(t.status), Tell: t.events, MayWait: t.minor && err == nil}
	switch nothingToCount := t.conclusion == nil && len(t.release) == 0; {
	case nothingToCount && !t.changed:
		return act.Plan{Why: r.change.why, RequeueAfter: r.change.wait, Due: true, Counts: r.counts(failing)}
	case nothingToCount:
		return act.Plan{
			Why: r.change.why + "; " + t.why(), RequeueAfter: r.change.wait, Due: true, Counts: r.counts(failing),
			Status: func(act.Results) act.Step { return status },
		}
	case !t.changed:
		return r.count(t, r.job, failing)
	}
	status.MayWait = false
	return act.Plan{
		Why: t.why(), Stages: act.Stages(status),
		Then: func(results act.Results) act.Plan {
			noted := results[len(results)-1]
			job := r.job
			switch noted.Became {
			case act.WasGone:
				return act.Plan{Why: "the Job is gone, which the cache shows soon", RequeueAfter: firstRetry, Counts: r.counts(failing)}
			case act.Done:
				job = noted.Object.(*batchv1.Job)
			}
			return r.count(t, job, failing)
		},
		Counts: func(own act.Results) []act.Count {
			return append(countStatuses(own), r.endedAmiss(r.change.action, own)...)
		},
	}
}

// count takes the finalizers off the pods that are noted, and moves those that have
// lost theirs into the numbers. Numbers of a Job that goes on can wait a little, too, but
// not where the Job or a pod of them is being deleted: what they count would be lost with
// the Job, and a pod that is gone then has to be looked for live.
func (r round) count(t *tally, job *batchv1.Job, failing bool) act.Plan {
	why := fmt.Sprintf("%s; removing the finalizers of %d pods that are noted in the status", r.change.why, len(t.release))
	if t.conclusion != nil {
		why = fmt.Sprintf("%s (%s): %d finalizers to take off, %d pods terminating",
			t.conclusion.terminal(), t.conclusion.reason, len(t.release), *t.status.Terminating)
	}
	steps := make([]act.Step, len(t.release))
	stays := job.DeletionTimestamp == nil
	for i, pod := range t.release {
		steps[i] = untrack(pod, false)
		stays = stays && pod.DeletionTimestamp == nil
	}
	return act.Plan{
		Why: why, Stages: []act.Stage{act.Together(steps...)}, RequeueAfter: r.change.wait, Due: true,
		Status: func(results act.Results) act.Step {
			next, whole := t.counted(results[len(results)-len(steps):])
			ended := whole && next.conclude(results.LastAt(r.view.now))
			if !next.changed && !ended {
				return nil
			}
			s := act.Status{Of: job, Set: put(next.status), MayWait: whole && !failing && t.conclusion == nil && stays}
			if ended {
				s.Tell = next.endEvents()
			}
			return s
		},
		Counts: func(own act.Results) []act.Count { return append(t.countHandled(), r.counts(failing)(own)...) },
	}
}

// counts is what the last plan of a turn counts; failing: one before it failed.
func (r round) counts(failing bool) func(act.Results) []act.Count {
	return func(own act.Results) []act.Count {
		return append(countStatuses(own), r.ended(r.change.action, failing || amiss(own))...)
	}
}

// put returns what puts a status into a Job.
func put(status batchv1.JobStatus) func(client.Object) {
	return func(o client.Object) { status.DeepCopyInto(&o.(*batchv1.Job).Status) }
}
