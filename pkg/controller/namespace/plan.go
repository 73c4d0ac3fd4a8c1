package namespace

import (
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// finalizeTries is how often a namespace that changes meanwhile is finalized in one pass.
const finalizeTries = 5

// observed is what the plan for a key needs to know.
type observed struct {
	// looked is what came of a look at many namespaces, nil for the key of one.
	looked *looked
	// cached is the namespace if it is to be emptied, and live if a live read says so too.
	cached, live *corev1.Namespace
	// found is what is known of what it holds, once a survey has been made.
	found    findings
	surveyed bool
	// settling is how long it is left alone yet.
	settling time.Duration
	resync   time.Duration
}

// notes are what is remembered of a plan and what became of it.
type notes struct {
	uid types.UID
	// kinds are what came of the deletion of kinds.
	kinds []came
	// wake are keys to reconcile at once.
	wake []string
	// renew has the namespace surveyed once more. A probe is made when what cannot be read
	// may be asked again.
	renew, probe bool
}

func noting(n notes) func(act.Results) any { return func(act.Results) any { return n } }

// plan empties a namespace, or says for what it waits.
func plan(o observed, now time.Time) act.Plan {
	switch {
	case o.looked != nil:
		return act.Plan{Why: o.looked.String(), Note: noting(notes{wake: o.looked.wake, probe: o.looked.blocked})}
	case o.cached == nil:
		return act.Plan{Why: "not terminating, or emptied already"}
	case o.settling > 0:
		return act.Plan{Why: "its deletion was seen a moment ago", RequeueAfter: o.settling}
	case !o.surveyed:
		return act.Plan{Why: "waiting for the next list of all resources", RequeueAfter: o.resync, Note: noting(notes{wake: []string{surveyKey}})}
	case o.found.stale(now):
		return renewal(o)
	case o.live == nil:
		return act.Plan{Why: "not terminating, or emptied already", RequeueAfter: settle}
	}
	return empty(o, now)
}

// renewal has a namespace surveyed once more.
func renewal(o observed) act.Plan {
	return act.Plan{
		Why:          "nothing is left, but the lists are too old: reading again",
		RequeueAfter: o.resync, Note: noting(notes{renew: true, wake: []string{surveyKey}}),
	}
}

// finish says what is in the way, and finalizes the namespace when nothing is.
func (e emptying) finish(so act.Results) act.Plan {
	o := e.outcome(so)
	now := so.LastAt(e.now)
	switch {
	case o.contradicted:
		return act.Plan{
			Why:  "a kind that discovery offers is answered as if it were not served: discovery is asked again",
			Note: noting(notes{wake: []string{e.live.Name}}), Retry: retried(o.retry),
		}
	case o.empty() && e.found.more:
		return act.Plan{
			Why:          "the kinds of objects have changed",
			RequeueAfter: e.resync, Note: noting(notes{wake: []string{probeKey}}), Retry: retried(o.retry),
		}
	case o.empty() && now.After(e.found.until):
		p := renewal(e.observed)
		p.Retry = retried(o.retry)
		return p
	}
	status := withConditions(e.live.Status, o, metav1.NewTime(now))
	status.Phase = corev1.NamespaceTerminating
	report := act.Status{Of: e.live, Set: func(n client.Object) { n.(*corev1.Namespace).Status = status }}
	if o.empty() {
		// The namespace goes even if its status cannot be written.
		return act.Plan{Why: "nothing is left", Stages: act.Stages(report), Then: e.finalize, Else: e.finalize, Retry: retried(o.retry)}
	}
	p := act.Plan{Why: o.why(), Status: func(act.Results) act.Step { return report }, RequeueAfter: e.resync, Retry: retried(o.retry)}
	if len(o.remaining) > 0 {
		p.RequeueAfter = o.wait(e.resync)
		if !equality.Semantic.DeepEqual(status, e.live.Status) {
			p.RequeueAfter = min(p.RequeueAfter, settle) // what has just changed may soon change again
		}
	}
	return p
}

// retried returns what is tried again with backoff: these, and what is written of the
// namespace itself.
func retried(failed []error) func(act.Results) error {
	return func(so act.Results) error {
		errs := slices.Clone(failed)
		for _, result := range so {
			if _, is := result.Step.About().(*corev1.Namespace); is {
				errs = append(errs, result.Err)
			}
		}
		return errors.Join(errs...)
	}
}

// finalize takes the finalizer off the namespace: as it is after its status was written, or as
// it was read if that was refused.
func (e emptying) finalize(so act.Results) act.Plan {
	if written, is := so[len(so)-1].Object.(*corev1.Namespace); is {
		return finalizing(written, finalizeTries)
	}
	return finalizing(e.live, finalizeTries)
}

// finalizing takes the kubernetes finalizer off; the API server then removes the
// namespace if no other is left. It is looked for once more: not found may be the answer of
// a webhook.
func finalizing(namespace *corev1.Namespace, tries int) act.Plan {
	next := namespace.DeepCopy()
	next.Spec.Finalizers = slices.DeleteFunc(next.Spec.Finalizers, func(f corev1.FinalizerName) bool {
		return f == corev1.FinalizerKubernetes
	})
	p := act.Plan{
		Why:    fmt.Sprintf("nothing is left: it is finalized, %d other finalizers stay", len(next.Spec.Finalizers)),
		Stages: act.Stages(act.Update{Object: next, Subresource: "finalize"}), Retry: retried(nil),
		Then: func(act.Results) act.Plan {
			return act.Plan{Why: "it is finalized", RequeueAfter: settle, Retry: retried(nil)}
		},
	}
	if tries > 1 {
		p.Afresh = func(o client.Object) act.Plan {
			live, is := o.(*corev1.Namespace)
			if !is || live.UID != namespace.UID {
				return act.Plan{Why: "another namespace has its name", Retry: retried(nil)}
			}
			return finalizing(live, tries-1)
		}
	}
	return p
}
