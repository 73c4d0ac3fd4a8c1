package cronjob

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// historyRetry is how soon a Job beyond the history limits is tried again to be
// deleted. It is no error of the CronJob, whose starts must not wait for it.
const historyRetry = time.Minute

// plan starts what is due and brings the status up to date: first comes the history,
// then the events, the start, and last the status, which is written also when the
// start failed.
func plan(o observed, now time.Time) act.Plan {
	d := decide(o, now)
	var history []act.Step
	for _, job := range d.remove {
		if job.DeletionTimestamp == nil {
			history = append(history, d.deletion(job, true))
		}
	}
	if len(history) == 0 {
		return d.goOn()
	}
	return act.Plan{
		Why:    fmt.Sprintf("%d Jobs that have ended are beyond the history limits", len(history)),
		Stages: act.Stages(history...),
		Then: func(r act.Results) act.Plan {
			kept := undone(r)
			rest, retry := decide(o, now, kept...), now.Add(historyRetry)
			if len(kept) > 0 && (rest.next.IsZero() || retry.Before(rest.next)) {
				rest.next = retry
			}
			return rest.goOn()
		},
	}
}

// undone are the UIDs of what could not be deleted.
func undone(r act.Results) (kept []types.UID) {
	for _, of := range r {
		if of.Became == act.LeftUndone {
			kept = append(kept, of.Step.About().GetUID())
		}
	}
	return kept
}

// deletion deletes a Job in the background.
func (d draft) deletion(job *batchv1.Job, optional bool) act.Step {
	return act.Delete{Of: job, Propagation: metav1.DeletePropagationBackground, Optional: optional, Events: act.Events{
		On: d.cron, DoneReason: "SuccessfulDelete", Done: "Deleted job %s", FailedReason: "FailedDelete", Failed: "Deleted job: %v",
	}}
}

// goOn records the events that there are, and starts what is due.
func (d draft) goOn() act.Plan {
	p := act.Plan{Why: d.sentence(), Status: d.report, RequeueAt: d.next, Due: true}
	if d.start != nil {
		p = d.replace(d.start.replace)
	}
	p.Stages = slices.Concat(act.Stages(d.events...), p.Stages)
	return p
}

// replace makes room for the Job that is due: it deletes active ones, each if a live
// look shows that it is the one that was listed.
func (d draft) replace(refs []corev1.ObjectReference) act.Plan {
	if len(refs) == 0 {
		return d.create()
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: d.cron.Namespace, Name: refs[0].Name, UID: refs[0].UID}}
	next := func(act.Results) act.Plan { return d.replace(refs[1:]) }
	return act.Plan{
		Why: d.sentence(),
		Stages: act.Stages(act.Check{Of: job, Is: func(live metav1.Object) error {
			if live == nil {
				return apierrors.NewNotFound(jobResource, job.Name)
			}
			return nil
		}}),
		Then: func(r act.Results) act.Plan {
			if isAnother(r[len(r)-1]) {
				return next(r)
			}
			return act.Plan{Why: "Job " + job.Name + " makes room for the next", Stages: act.Stages(d.deletion(job, false)), Then: next, Status: d.report, RequeueAt: d.next, Due: true}
		},
		Else: func(r act.Results) act.Plan {
			_, err := r.Failed()
			return act.Plan{
				Why: "Job " + job.Name + ", which is to make room, cannot be read", Status: d.report, RequeueAt: d.next, Due: true,
				Stages: act.Stages(act.Event{On: d.cron, Type: corev1.EventTypeWarning, Reason: "FailedGet", Message: fmt.Sprintf("Get job: %v", err)}),
			}
		},
	}
}

// isAnother reports whether a look found another object of the name.
func isAnother(looked act.Result) bool {
	return looked.Became == act.Done && looked.Object.GetUID() != looked.Step.About().GetUID()
}

// create makes the Job that is due. It may be there already: made before the status
// could be written.
func (d draft) create() act.Plan {
	job := newJob(d.cron, d.start.at, d.start.zone)
	return act.Plan{
		Why: d.sentence(),
		Stages: act.Stages(act.Create{
			Object: job, MayExist: true, Same: func(live client.Object) bool { return metav1.IsControlledBy(live, d.cron) },
			Events: act.Events{On: d.cron, DoneReason: "SuccessfulCreate", Done: "Created job %s", FailedReason: "FailedCreate", Failed: "Error creating job: %v"},
		}),
		Status: d.report, RequeueAt: d.next, Due: true,
		Counts: func(r act.Results) (counts []act.Count) {
			for _, made := range act.Succeeded[act.Create](r) {
				counts = append(counts, act.Count{Observes: creationSkew, Value: made.Object.GetCreationTimestamp().Sub(d.start.at).Seconds()})
			}
			return counts
		},
		Else: func(r act.Results) act.Plan {
			p := act.Plan{Why: "Job " + job.Name + " could not be made", Status: d.report, RequeueAt: d.next, Due: true}
			switch last := r[len(r)-1]; {
			case last.Became == act.Ending:
				p.Why = "the namespace is being deleted"
				p.Err = fmt.Errorf("create Job %s/%s: the namespace is being deleted", job.Namespace, job.Name)
			case last.Became == act.Taken && last.Err == nil:
				p.Why = "somebody else's Job has the name " + job.Name
			}
			return p
		},
	}
}

// report is the status, with what became of the Jobs that were replaced and started.
func (d draft) report(r act.Results) act.Step {
	status := *d.status.DeepCopy()
	for _, of := range r {
		switch of.Step.(type) {
		case act.Check:
			if isAnother(of) {
				deactivate(&status, of.Step.About().GetUID())
			}
		case act.Delete:
			if of.Became == act.Done || of.Became == act.WasGone {
				deactivate(&status, of.Step.About().GetUID())
			}
		case act.Create:
			job, is := of.Object.(*batchv1.Job)
			if is && (of.Became == act.Done || of.Became == act.Existed) && !uids(status.Active)[job.UID] {
				started(&status, job, d.start.at)
			}
		}
	}
	return act.Status{Of: d.cron, Set: func(o client.Object) { o.(*batchv1.CronJob).Status = status }}
}

// sentence is why, with numbers.
func (d draft) sentence() string {
	switch running := len(d.status.Active); {
	case d.start != nil:
		return fmt.Sprintf("%s: Job %s of %s", d.why, jobName(d.cron, d.start.at), d.start.at.UTC().Format(time.RFC3339))
	case d.next.IsZero():
		return fmt.Sprintf("%s; %d Jobs run", d.why, running)
	default:
		return fmt.Sprintf("%s; %d Jobs run, the next look is at %s", d.why, running, d.next.UTC().Format(time.RFC3339))
	}
}
