package job

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// plan brings a Job a step further. Pods are adopted and let go first, because what
// is to be done depends on which ones are the Job's.
func plan(o observed, now time.Time) act.Plan {
	switch job := o.job; {
	case managedElsewhere(job):
		return act.Plan{Why: "run by " + *job.Spec.ManagedBy}
	case finished(job):
		return o.freeLeftovers()
	case !knownMode(job):
		return act.Plan{Why: "its completion mode is unknown", Stages: act.Stages(act.Event{On: job, Type: corev1.EventTypeWarning,
			Reason: "UnknownCompletionMode", Message: "Skipped Job sync because completion mode is unknown"})}
	case o.invalid != nil && job.DeletionTimestamp != nil:
		p := o.freeLeftovers()
		p.Why = "it is being deleted, and its selector is invalid: its pods are let go"
		return p
	case o.invalid != nil:
		return act.Plan{Why: "its selector is invalid or does not match its template", Terminal: o.invalid}
	}
	unseen := o.unseen()
	if len(o.claims.Adopt)+len(o.claims.Release)+len(o.strays)+unseen == 0 {
		return o.gather(o.claims.Owned, now)
	}
	var adopt, release, look []act.Step
	for _, pod := range o.claims.Adopt { // an adopted pod is to be counted too
		adopt = append(adopt, act.Adopt{Child: pod, Owner: o.job, Kind: kind, Selector: o.selector, Finalizers: []string{batchv1.JobTrackingFinalizer}})
	}
	for _, pod := range o.claims.Release {
		release = append(release, act.Release{Child: pod, Owner: o.job, Finalizers: []string{batchv1.JobTrackingFinalizer}})
	}
	for _, pod := range o.strays {
		release = append(release, untrack(pod, false))
	}
	if unseen > 0 {
		look = append(look, act.Look{Owner: o.job, Siblings: o.selector, Kind: &corev1.Pod{}})
	}
	return act.Plan{
		Why:    fmt.Sprintf("%d pods to adopt, %d to release, %d noted pods are not in the cache: reading them live", len(adopt), len(release), unseen),
		Stages: []act.Stage{act.Each(adopt...), act.Each(release...), act.InTurn(look...)},
		Then:   func(r act.Results) act.Plan { return o.gather(act.Owned(o.claims.Owned, r), now) },
		Counts: func(r act.Results) []act.Count { return o.endedAmiss(actionReconciling, r) },
	}
}

// round looks at the pods of the Job, and decides. What they show of failures is
// remembered, because pods go.
func (o observed) round(all []*corev1.Pod, now time.Time) act.Plan {
	v := look(o.job, slices.SortedFunc(slices.Values(all), byName), o.streak, now)
	if o.patient {
		v.allowance = v.allowanceNow()
	}
	v.keepStart, v.namespaceEnds = o.keepStart, o.namespaceEnds
	c := decide(v)
	if o.refused != nil && len(c.create) > 0 {
		c.create, c.why = nil, c.why+", none of them without a PodGroup"
	}
	p := round{observed: o, view: v, change: c}.retrack()
	p.Note = func(act.Results) any { return remembered{o.job.UID, v.streak} }
	return p
}

// unseen is how many pods the status notes that are not among those of the cache, as
// an earlier process may have noted them: counted now, one that the cache does not
// show yet might be counted again.
func (o observed) unseen() int {
	noted := ptr.Deref(o.job.Status.UncountedTerminatedPods, batchv1.UncountedTerminatedPods{})
	left := sets.New(slices.Concat(noted.Succeeded, noted.Failed)...)
	for _, all := range [][]*corev1.Pod{o.claims.Owned, o.claims.Adopt} {
		for i := 0; i < len(all) && len(left) > 0; i++ {
			left.Delete(all[i].UID)
		}
	}
	return len(left)
}

// freeLeftovers takes the finalizers off what a Job that is finished has left uncounted.
func (o observed) freeLeftovers() act.Plan {
	var steps []act.Step
	for _, pod := range o.claims.Owned {
		if tracked(pod) {
			steps = append(steps, untrack(pod, false))
		}
	}
	how := "complete"
	if conditionOf(o.job, batchv1.JobFailed) != nil {
		how = "failed"
	}
	p := act.Plan{
		Why:  fmt.Sprintf("%s: %d pods succeeded, %d failed", how, o.job.Status.Succeeded, o.job.Status.Failed),
		Note: func(act.Results) any { return remembered{job: o.job.UID} },
	}
	if len(steps) > 0 {
		p.Why += fmt.Sprintf("; %d still have the finalizer: removing it", len(steps))
		p.Stages = []act.Stage{act.Each(steps...)}
	}
	return p
}
