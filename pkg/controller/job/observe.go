package job

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

var (
	// workloadsByJob finds Workloads by the namespace/name of the Job that they name.
	workloadsByJob = cache.NewIndex("workloadsByJob", func(object any) ([]string, error) {
		if w, ok := object.(*schedulingv1alpha2.Workload); ok {
			if ref := w.Spec.ControllerRef; ref != nil && ref.APIGroup == kind.Group && ref.Kind == kind.Kind {
				return []string{w.Namespace + "/" + ref.Name}, nil
			}
		}
		return nil, nil
	})
	// groupsByWorkload finds PodGroups by the namespace/name of the Workload that they were made from.
	groupsByWorkload = cache.NewIndex("podGroupsByWorkload", func(object any) ([]string, error) {
		if g, ok := object.(*schedulingv1alpha2.PodGroup); ok {
			if ref := g.Spec.PodGroupTemplateRef; ref != nil && ref.Workload != nil {
				return []string{g.Namespace + "/" + ref.Workload.WorkloadName}, nil
			}
		}
		return nil, nil
	})
)

// observed is what the caches hold of a Job.
type observed struct {
	job *batchv1.Job
	// selector is what its pods match; invalid is why they cannot be distinguished from others.
	selector labels.Selector
	invalid  error
	// claims are its pods, by what has to become of them. Those of a Job that is
	// finished are all owned.
	claims ownership.Claims[*corev1.Pod]
	// streak is what is remembered of failures, as pods that are gone recorded them.
	streak streak
	// patient: rejected pods are replaced ever more rarely.
	patient bool
	// keepStart: a Job that is suspended keeps its start time.
	keepStart bool
	// namespaceEnds: its namespace is being deleted, so that no pods can be made.
	namespaceEnds bool
	began         time.Time

	// strays are pods of a Job that is being deleted that the selector does not select.
	strays []*corev1.Pod

	// gang is of a Job whose pods are scheduled together; nil of any other.
	gang *gang
	// podGroup is that of the pods to make, if any; refused is what became of one that
	// could not be made, and so no pods are.
	podGroup string
	refused  act.Results
}

// observe reads a Job and its pods from the caches.
func (c *Controller) observe(_ context.Context, key Key) (observed, error) {
	job, err := reconcile.Cached[batchv1.Job](c.jobIndex, key)
	if err != nil {
		return observed{}, err
	}
	o := observed{job: job, streak: c.memory.streak(job.UID), patient: c.patient, keepStart: c.keepStart, began: c.jobs.Clock().Now()}
	if namespace, err := c.namespaces.Get(job.Namespace); err == nil {
		o.namespaceEnds = namespace.DeletionTimestamp != nil
	}
	owned, err := cache.Controlled[corev1.Pod](c.podIndex, job.Namespace, job.UID)
	o.claims.Owned = owned
	if err != nil || managedElsewhere(job) || finished(job) {
		return o, err
	}
	if o.selector, o.invalid = c.selectorOf(job); o.invalid != nil {
		return o, nil
	}
	orphans, err := cache.Adoptable[corev1.Pod](c.podIndex, job.Namespace, o.selector)
	o.claims = ownership.Claim(job, o.selector, slices.Concat(owned, orphans))
	if job.DeletionTimestamp != nil {
		o.strays = straysOf(owned, o.selector)
	}
	if err != nil || c.workloads == nil || !ganged(job) {
		return o, err
	}
	o.gang, err = c.gangOf(job)
	return o, err
}

// straysOf are the pods that a Job which is being deleted does not release any more. It may
// wait for them to go, and they for their finalizers.
func straysOf(owned []*corev1.Pod, selector labels.Selector) (strays []*corev1.Pod) {
	for _, pod := range owned {
		if tracked(pod) && !selector.Matches(labels.Set(pod.Labels)) {
			strays = append(strays, pod)
		}
	}
	return strays
}

// gangOf reads what there is for the pods of the Job to be scheduled together.
func (c *Controller) gangOf(job *batchv1.Job) (*gang, error) {
	workloads, err := cache.Lookup[schedulingv1alpha2.Workload](c.workloads, workloadsByJob, job.Namespace+"/"+job.Name)
	if err != nil || len(workloads) != 1 {
		return &gang{workloads: workloads}, err
	}
	groups, err := cache.Lookup[schedulingv1alpha2.PodGroup](c.groups, groupsByWorkload, job.Namespace+"/"+workloads[0].Name)
	return &gang{workloads, groups}, err
}

// selectorOf is the selector of a Job whose pods are its own; an empty one selects everything.
// The API server validates that; a Job without was written past it.
func (c *Controller) selectorOf(job *batchv1.Job) (labels.Selector, error) {
	selector, err := c.selectors.Of(job, job.Spec.Selector)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the selector of Job %s/%s: %w", job.Namespace, job.Name, err)
	case !selector.Matches(labels.Set(job.Spec.Template.Labels)):
		return nil, fmt.Errorf("the selector of Job %s/%s does not match its template", job.Namespace, job.Name)
	}
	return selector, nil
}

// managedElsewhere reports whether somebody else runs the Job.
func managedElsewhere(job *batchv1.Job) bool {
	return job.Spec.ManagedBy != nil && *job.Spec.ManagedBy != batchv1.JobControllerName
}

func knownMode(job *batchv1.Job) bool {
	return slices.Contains([]batchv1.CompletionMode{"", batchv1.NonIndexedCompletion, batchv1.IndexedCompletion}, ptr.Deref(job.Spec.CompletionMode, ""))
}

func byName(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) }
