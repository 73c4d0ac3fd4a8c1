package ttlafterfinished

import (
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	"k8s.io/client-go/kubernetes"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	name  = "ttl-after-finished-controller"
	queue = "ttl_jobs_to_delete"

	// confirmGone is how soon a Job that is not found, but that the cache shows, is looked at again.
	confirmGone = time.Second
)

var jobResource = schema.GroupResource{Group: batchv1.GroupName, Resource: "jobs"}

// Options are the settings of the controller.
type Options struct {
	// Workers is how many Jobs are looked at at once.
	Workers int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller deletes Jobs whose time has come.
type Controller struct {
	*runner.Runner[types.NamespacedName]
	jobs   batchlisters.JobLister
	client kubernetes.Interface
	writes *consistency.Tracker[types.NamespacedName]
	clock  clock.PassiveClock
}

// New returns the controller, which is not running yet.
func New(jobs batchinformers.JobInformer, client kubernetes.Interface, o Options) (*Controller, error) {
	register()
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	c := &Controller{
		jobs: jobs.Lister(), client: client, clock: o.Clock,
		writes: consistency.NewTracker[types.NamespacedName](map[schema.GroupResource]consistency.Store{
			jobResource: jobs.Informer().GetStore(),
		}),
	}
	c.Runner = runner.New(runner.Options[types.NamespacedName]{
		Name: name, Queue: queue, Workers: o.Workers, Clock: o.Clock, Writes: c.writes,
	}, c.sync)
	return c, runner.Watch(c.Runner, jobs.Informer(), jobChanged)
}

// jobChanged wakes a Job that has ended and has a time to live, and no other.
func jobChanged(change runner.Change[batchv1.Job], wake runner.Wake[types.NamespacedName]) {
	if job := change.New; job != nil && concerns(job) {
		wake.Add(types.NamespacedName{Namespace: job.Namespace, Name: job.Name})
	}
}

func (c *Controller) sync(ctx context.Context, key types.NamespacedName) runner.Result {
	job, err := c.jobs.Jobs(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.writes.Forget(key)
		return runner.Done().Because(plan{Why: "it is gone"})
	}
	if err != nil {
		return runner.Done(err)
	}
	do := decide(job, c.clock.Now())
	if do.Delete {
		if do, err = c.deleteLive(ctx, key); err != nil {
			return runner.Done(err).Because(do)
		}
	}
	if do.unclear != nil {
		return runner.GiveUp(do.unclear).Because(do)
	}
	return runner.Done().LookAgain(do.Again).Because(do)
}

// deleteLive judges the Job as it is now and deletes it in that version.
func (c *Controller) deleteLive(ctx context.Context, key types.NamespacedName) (plan, error) {
	live, err := c.client.BatchV1().Jobs(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return plan{Why: "it seems to be gone", Again: confirmGone}, nil
	}
	if err != nil {
		return plan{Why: "it cannot be read"}, fmt.Errorf("read job %s before its deletion: %w", key, err)
	}
	do := decide(live, c.clock.Now())
	if !do.Delete {
		return do, nil
	}
	foreground := metav1.DeletePropagationForeground
	err = c.client.BatchV1().Jobs(key.Namespace).Delete(ctx, key.Name, metav1.DeleteOptions{
		PropagationPolicy: &foreground,
		Preconditions:     &metav1.Preconditions{UID: &live.UID, ResourceVersion: &live.ResourceVersion},
	})
	switch became, err := c.writes.DeleteAnswered(ctx, key, jobResource, live, err); became {
	case consistency.WasGone:
		return do, nil
	case consistency.Failed:
		return do, fmt.Errorf("delete job %s, whose time has come: %w", key, err)
	}
	deletionDuration.Observe(c.clock.Since(do.expired).Seconds())
	klog.FromContext(ctx).V(3).Info("Deleted a job whose time had come", "job", key, "due", do.expired)
	return do, nil
}
