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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/podwriter"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	controllerName = "job-controller"
	queueName      = "job"
	orphanQueue    = "job_orphan_pod"

	// batchPeriod gathers the changes of a Job's pods.
	batchPeriod = time.Second
	// firstRetry and lastRetry bound how long a Job waits after a failed request.
	firstRetry = time.Second
	lastRetry  = time.Minute
)

var (
	kind        = batchv1.SchemeGroupVersion.WithKind("Job")
	jobResource = batchv1.Resource("jobs")
)

// Key names a Job, or a pod.
type Key = types.NamespacedName

// Options say how the controller runs.
type Options struct {
	// Workers is how many Jobs are reconciled at once (--concurrent-job-syncs).
	Workers int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
	// RejectedPodBackoff replaces pods that kubelets reject at once ever more rarely (--rejected-pod-backoff).
	RejectedPodBackoff bool
}

// Controller runs Jobs.
type Controller struct {
	*runner.Group
	jobs, orphans *runner.Runner[Key]

	jobIndex, podIndex toolscache.Indexer
	client             kubernetes.Interface
	events             record.EventRecorder
	writes             *consistency.Tracker[Key]
	writer             podwriter.Writer
	clock              clock.PassiveClock
	// reports is when the next status is due that can wait.
	reports   *pace.Pacer[Key]
	selectors *cache.Selectors
	memory    memory
	patient   bool // replaces rejected pods ever more rarely
}

// New returns the controller, which is not running yet.
func New(jobs batchinformers.JobInformer, pods coreinformers.PodInformer,
	client kubernetes.Interface, events record.EventRecorder, o Options) (*Controller, error) {
	registerMetrics()
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := cache.Ensure(jobs.Informer(), cache.BySelector); err != nil {
		return nil, err
	}
	if err := cache.Ensure(pods.Informer(), cache.ByController, cache.Orphans, cache.OrphansByLabel); err != nil {
		return nil, err
	}
	c := &Controller{
		jobIndex: jobs.Informer().GetIndexer(), podIndex: pods.Informer().GetIndexer(),
		client: client, events: events, clock: o.Clock, patient: o.RejectedPodBackoff,
		reports: pace.New[Key](o.Clock, pace.ReportShare, pace.LongestReport), selectors: cache.NewSelectors(),
		writes: consistency.NewTracker[Key](map[schema.GroupResource]consistency.Store{
			podwriter.Resource: pods.Informer().GetStore(),
			jobResource:        jobs.Informer().GetStore(),
		}),
	}
	c.writer = podwriter.Writer{Kind: kind, Client: client, Events: events, Writes: c.writes, Finalizers: []string{batchv1.JobTrackingFinalizer}}
	c.jobs = runner.New(runner.Options[Key]{
		Name: controllerName, Queue: queueName, Workers: o.Workers, Clock: o.Clock, Writes: c.writes, OnHeld: countHeld,
		Events: events, Object: c.object,
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[Key](firstRetry, lastRetry),
	}, c.sync)
	c.orphans = runner.New(runner.Options[Key]{
		Name: controllerName + "-orphans", Queue: orphanQueue, Clock: o.Clock,
		Synced:      []toolscache.InformerSynced{jobs.Informer().HasSynced, pods.Informer().HasSynced},
		RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[Key](firstRetry, lastRetry),
	}, c.syncOrphan)
	c.Group = runner.NewGroup(controllerName, c.jobs, c.orphans)
	if err := runner.Watch(c.jobs, jobs.Informer(), c.jobChanged); err != nil {
		return nil, err
	}
	return c, runner.Watch(c.jobs, pods.Informer(), c.podChanged)
}

// sync brings one Job a step further.
func (c *Controller) sync(ctx context.Context, key Key) runner.Result {
	job, err := c.cached(key)
	switch {
	case job == nil || err != nil:
		return runner.Done(err)
	case managedElsewhere(job):
		return runner.Done()
	case finished(job):
		c.memory.forget(job.UID)
		return runner.Done(c.leftovers(job))
	case !knownMode(job):
		c.events.Event(job, corev1.EventTypeWarning, "UnknownCompletionMode", "Skipped Job sync because completion mode is unknown")
		return runner.Done()
	}
	selector, err := c.selectorOf(job)
	if err != nil {
		return runner.GiveUp(err)
	}
	began := c.clock.Now()
	p, err := c.reconcile(ctx, key, job, selector)
	observeSync(job, p.action, c.clock.Now().Sub(began), err)
	return runner.Done(err).LookAgain(p.wait).Because(p.explain())
}

// reconcile looks, decides, acts, counts.
func (c *Controller) reconcile(ctx context.Context, key Key, job *batchv1.Job, selector labels.Selector) (plan, error) {
	nothing := plan{action: actionReconciling}
	all, err := c.claim(ctx, key, job, selector)
	if err != nil {
		return nothing, err
	}
	if err := c.lookForLate(ctx, key, job, selector, all); err != nil {
		return nothing, err
	}
	v := look(job, all, c.memory.streak(job.UID), c.clock.Now())
	c.memory.remember(job.UID, v.streak)
	if c.patient {
		v.judged = v.judge()
	}
	p := decide(v)
	did, failed := c.carryOut(ctx, key, v, p)
	did.until = p.until
	wait, err := c.track(ctx, key, begin(v, did), failed != nil)
	p.wait = sooner(p.wait, wait)
	if err != nil {
		return p, fmt.Errorf("track the pods of Job %s: %w", key, err)
	}
	return p, failed
}

// leftovers hands over what a Job that is finished has left uncounted.
func (c *Controller) leftovers(job *batchv1.Job) error {
	owned, err := cache.Lookup[corev1.Pod](c.podIndex, cache.ByController, string(job.UID))
	for _, pod := range owned {
		if tracked(pod) {
			c.orphans.Add(Key{Namespace: pod.Namespace, Name: pod.Name})
		}
	}
	return err
}

func (c *Controller) cached(key Key) (*batchv1.Job, error) {
	item, exists, err := c.jobIndex.GetByKey(key.String())
	if err != nil || !exists {
		return nil, err
	}
	return item.(*batchv1.Job), nil
}

// object is what an event about the key is about.
func (c *Controller) object(key Key) runtime.Object {
	job, err := c.cached(key)
	if err != nil || job == nil {
		return nil
	}
	return job
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

// managedElsewhere tells whether somebody else runs the Job.
func managedElsewhere(job *batchv1.Job) bool {
	return job.Spec.ManagedBy != nil && *job.Spec.ManagedBy != batchv1.JobControllerName
}

func knownMode(job *batchv1.Job) bool {
	return slices.Contains([]batchv1.CompletionMode{"", batchv1.NonIndexedCompletion, batchv1.IndexedCompletion}, ptr.Deref(job.Spec.CompletionMode, ""))
}

func byName(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) }
