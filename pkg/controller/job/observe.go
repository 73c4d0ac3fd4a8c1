package job

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/ownership"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// observed is what the caches hold of a Job.
type observed struct {
	job *batchv1.Job
	// selector is what its pods match; invalid is why they cannot be told from others.
	selector labels.Selector
	invalid  error
	// claims are its pods, by what has to become of them. Those of a Job that is
	// finished are all owned.
	claims ownership.Claims[*corev1.Pod]
	// streak is what is remembered of failures, as pods that are gone told them.
	streak streak
	// patient: rejected pods are replaced ever more rarely.
	patient bool
	began   time.Time
}

// observe reads a Job and its pods from the caches.
func (c *Controller) observe(_ context.Context, key Key) (observed, error) {
	job, err := reconcile.Cached[batchv1.Job](c.jobIndex, key)
	if err != nil {
		return observed{}, err
	}
	o := observed{job: job, streak: c.memory.streak(job.UID), patient: c.patient, began: c.jobs.Clock().Now()}
	owned, err := cache.Lookup[corev1.Pod](c.podIndex, cache.ByController, string(job.UID))
	o.claims.Owned = owned
	if err != nil || managedElsewhere(job) || finished(job) {
		return o, err
	}
	if o.selector, o.invalid = c.selectorOf(job); o.invalid != nil {
		return o, nil
	}
	orphans, err := cache.Adoptable[corev1.Pod](c.podIndex, job.Namespace, o.selector)
	o.claims = ownership.Claim(job, o.selector, slices.Concat(owned, orphans))
	return o, err
}

// selectorOf is the selector of a Job whose pods are its own. The API server
// validates that; a Job without was written past it.
func (c *Controller) selectorOf(job *batchv1.Job) (labels.Selector, error) {
	selector, err := c.selectors.Of(job, job.Spec.Selector)
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the selector of Job %s/%s: %w", job.Namespace, job.Name, err)
	case selector.Empty() || !selector.Matches(labels.Set(job.Spec.Template.Labels)):
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
