package job

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// orphan is a pod that perhaps no Job is going to count.
type orphan struct {
	pod *corev1.Pod
	// job is the one that controls it, nil if the cache does not show it.
	job *batchv1.Job
}

func (c *Controller) observeOrphan(_ context.Context, key Key) (orphan, error) {
	pod, err := reconcile.Cached[corev1.Pod](c.podIndex, key)
	if err != nil {
		return orphan{}, err
	}
	return orphan{pod, c.jobOf(pod)}, nil
}

// planOrphan takes the finalizer off a pod that no Job is going to count. When the cache
// does not show the Job it may only be behind: the pods keep the finalizer until somebody
// deletes them. If the Job is gone, the garbage collector does.
func planOrphan(o orphan, _ time.Time) act.Plan {
	ref := metav1.GetControllerOfNoCopy(o.pod)
	switch {
	case !tracked(o.pod):
		return act.Plan{Why: "it has been counted"}
	case ref == nil:
		return o.freeUnowned()
	case !ofJob(ref):
		return act.Plan{Why: "its owner is no Job"}
	case o.job == nil && o.pod.DeletionTimestamp == nil:
		return act.Plan{Why: "its Job is not in the cache: it keeps the finalizer until it is deleted"}
	case o.job != nil && (managedElsewhere(o.job) || !finished(o.job)):
		return act.Plan{Why: "its Job counts it"}
	}
	return act.Plan{Why: "no Job will count it: removing the finalizer", Stages: act.Stages(untrack(o.pod, false))}
}

// freeUnowned frees a pod without owner in the version that was seen: a Job may adopt
// it just now. Then it has changed, and is looked at again.
func (o orphan) freeUnowned() act.Plan {
	step := untrack(o.pod, true)
	step.CalledFor = func(live metav1.Object) bool { return live.GetResourceVersion() == o.pod.ResourceVersion }
	return act.Plan{
		Why: "it has no owner that will count it: removing the finalizer", Stages: act.Stages(step),
		Then: func(r act.Results) act.Plan {
			if r[0].Became == act.NotCalledFor {
				return act.Plan{Why: "it has changed meanwhile, and may have been adopted", RequeueAfter: firstRetry}
			}
			return act.Plan{Why: "it does not need to be counted any more"}
		},
	}
}

// track gives a pod the finalizer, unless it is on its way out.
func track(pod *corev1.Pod) act.Patch {
	return act.Merge(pod, map[string]any{"finalizers": []string{batchv1.JobTrackingFinalizer}})
}

// untrack takes the finalizer off a pod; with unchanged only off the version that was
// looked at.
func untrack(pod *corev1.Pod, unchanged bool) act.Patch {
	fields := map[string]any{"$deleteFromPrimitiveList/finalizers": []string{batchv1.JobTrackingFinalizer}}
	if unchanged {
		fields["resourceVersion"] = pod.ResourceVersion
	}
	p := act.Merge(pod, fields)
	p.UntilGone = true
	return p
}
