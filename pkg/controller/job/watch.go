package job

import (
	"maps"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// jobChanged wakes a Job: at once if it is new or its spec has changed, together
// with the changes of its pods if only its status has.
func (c *Controller) jobChanged(change runner.Change[batchv1.Job], wake runner.Wake[Key]) {
	if old := change.Old; old != nil && (change.New == nil || change.New.UID != old.UID) {
		c.jobGone(old)
	}
	job := change.New
	if job == nil {
		wake.Add(Key{Namespace: change.Old.Namespace, Name: change.Old.Name}) // what was written for it is forgotten there
		return
	}
	key := Key{Namespace: job.Namespace, Name: job.Name}
	isNew := change.Old == nil || change.Old.UID != job.UID
	switch {
	case managedElsewhere(job):
		if isNew {
			managedByOthers.WithLabelValues(*job.Spec.ManagedBy).Inc()
		}
	case isNew || change.Old.Generation != job.Generation:
		wake.Add(key)
	default:
		wake.AddAfter(key, batchPeriod)
	}
}

// jobGone looks at what a Job that is no more has left.
func (c *Controller) jobGone(job *batchv1.Job) {
	c.memory.remember(remembered{job: job.UID})
	if managedElsewhere(job) {
		return
	}
	left, err := cache.Controlled[corev1.Pod](c.podIndex, job.Namespace, job.UID)
	if err != nil {
		klog.Background().WithName(controllerName).Error(err, "Cannot find the pods of a deleted Job; they keep their finalizers for now", "job", klog.KObj(job))
	}
	for _, pod := range left {
		if tracked(pod) {
			c.orphans.Add(Key{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
}

// podChanged wakes the Job that controls the pod and the one that did so before,
// and for a pod that nobody controls the Jobs that could adopt it. One that is to
// be counted by a Job which is not there is looked at as an orphan.
func (c *Controller) podChanged(change runner.Change[corev1.Pod], wake runner.Wake[Key]) {
	if change.Old != nil && change.New != nil && change.Old.ResourceVersion == change.New.ResourceVersion {
		return // a resync; the Jobs are resynced themselves
	}
	countTracked(change.Old, change.New)
	before, was := c.ownerOf(change.Old)
	after, is := c.ownerOf(change.New)
	if was && (!is || before != after) {
		wake.AddAfter(before, batchPeriod)
	}
	pod := change.New
	switch {
	case is:
		wake.AddAfter(after, batchPeriod)
	case pod == nil:
	case tracked(pod):
		c.orphans.Add(Key{Namespace: pod.Namespace, Name: pod.Name})
	}
	if pod != nil && pods.Adoptable(pod) && !(change.Old != nil && pods.Adoptable(change.Old) && maps.Equal(change.Old.Labels, pod.Labels)) {
		c.wakeSelecting(pod, wake)
	}
}

func (c *Controller) wakeSelecting(pod *corev1.Pod, wake runner.Wake[Key]) {
	candidates, err := cache.MaySelect[batchv1.Job](c.jobIndex, pod)
	if err != nil {
		klog.Background().WithName(controllerName).Error(err, "Cannot find the Jobs that could adopt a pod; they are not woken", "pod", klog.KObj(pod))
		return
	}
	for _, job := range candidates {
		selector, err := c.selectors.Of(job, job.Spec.Selector)
		if err == nil && !managedElsewhere(job) && selector.Matches(labels.Set(pod.Labels)) {
			wake.AddAfter(Key{Namespace: job.Namespace, Name: job.Name}, batchPeriod)
		}
	}
}

// ownerOf is the Job that controls the pod, if it is there and ours to run.
func (c *Controller) ownerOf(pod *corev1.Pod) (Key, bool) {
	if pod == nil {
		return Key{}, false
	}
	job := c.jobOf(pod)
	if job == nil || managedElsewhere(job) {
		return Key{}, false
	}
	return Key{Namespace: job.Namespace, Name: job.Name}, true
}

// jobOf is the cached Job that controls the pod; nil if there is none.
func (c *Controller) jobOf(pod *corev1.Pod) *batchv1.Job {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || !ofJob(ref) {
		return nil
	}
	job, err := reconcile.Cached[batchv1.Job](c.jobIndex, Key{Namespace: pod.Namespace, Name: ref.Name})
	if err != nil || job.UID != ref.UID {
		return nil
	}
	return job
}

// ofJob reports whether an owner is a Job.
func ofJob(ref *metav1.OwnerReference) bool {
	return ref.Kind == kind.Kind && ref.APIVersion == batchv1.SchemeGroupVersion.String()
}
