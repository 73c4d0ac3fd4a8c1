package job

import (
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/types"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	schedulinginformers "k8s.io/client-go/informers/scheduling/v1alpha2"
	corelisters "k8s.io/client-go/listers/core/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/pkg/workload/staleness"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/pace"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
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
	kind         = batchv1.SchemeGroupVersion.WithKind("Job")
	jobResource  = batchv1.Resource("jobs")
	podsResource = corev1.Resource("pods")
)

// Key names a Job, or a pod.
type Key = types.NamespacedName

// Options say how the controller runs.
type Options struct {
	// Workers is how many Jobs are reconciled at once (--concurrent-job-syncs).
	Workers int
	// RejectedPodBackoff replaces pods that kubelets reject at once ever more rarely (--rejected-pod-backoff).
	RejectedPodBackoff bool
	// KeepStartTime leaves a Job that is suspended its start time (MutableSchedulingDirectivesForSuspendedJobs=false).
	KeepStartTime bool
	// Gangs has pods that run together scheduled together (WorkloadWithJob); nil: each is scheduled by itself.
	Gangs schedulinginformers.Interface
}

// Controller runs Jobs.
type Controller struct {
	*runner.Group
	jobs, orphans *reconcile.Controller[Key]

	jobIndex, podIndex toolscache.Indexer
	// reports is when the next status is due that can wait.
	reports   *pace.Pacer[Key]
	selectors *cache.Selectors
	memory    memory
	patient   bool // replaces rejected pods ever more rarely
	keepStart bool // of a Job that is suspended
	// workloads and groups are nil when each pod is scheduled by itself.
	workloads, groups toolscache.Indexer
	namespaces        corelisters.NamespaceLister
}

// New returns the controller, which is not running yet.
func New(jobs batchinformers.JobInformer, pods coreinformers.PodInformer, namespaces coreinformers.NamespaceInformer, hand reconcile.Hand, o Options) (*Controller, error) {
	registerMetrics()
	if err := errors.Join(cache.Ensure(jobs.Informer(), cache.BySelector), cache.Ensure(pods.Informer(), cache.ByController, cache.Orphans, cache.OrphansByLabel)); err != nil {
		return nil, err
	}
	c := &Controller{
		jobIndex: jobs.Informer().GetIndexer(), podIndex: pods.Informer().GetIndexer(), patient: o.RejectedPodBackoff, keepStart: o.KeepStartTime,
		reports: pace.New[Key](hand.Clock, pace.ReportShare, pace.LongestReport), selectors: cache.NewSelectors(), namespaces: namespaces.Lister(),
	}
	podStore := pods.Informer().GetStore()
	caches := reconcile.Caches{podsResource: podStore, jobResource: jobs.Informer().GetStore()}
	synced, err := c.addGangs(o.Gangs, caches)
	if err != nil {
		return nil, err
	}
	c.jobs = reconcile.New(reconcile.Options[Key]{
		Runner: runner.Options[Key]{
			Name: controllerName, Queue: queueName, Workers: o.Workers, OnHeld: staleness.Count(staleSyncSkips), Object: reconcile.ObjectIn[Key](c.jobIndex), Synced: append(synced, namespaces.Informer().HasSynced),
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[Key](firstRetry, lastRetry),
		},
		Hand: hand, Caches: caches, Reports: c.reports, Note: c.note,
	}, c.observe, plan)
	c.orphans = reconcile.New(reconcile.Options[Key]{
		Name: controllerName,
		Runner: runner.Options[Key]{
			Name: controllerName + "-orphans", Queue: orphanQueue,
			Synced:      []toolscache.InformerSynced{jobs.Informer().HasSynced, pods.Informer().HasSynced},
			RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[Key](firstRetry, lastRetry),
		},
		Hand: hand, Caches: reconcile.Caches{podsResource: podStore},
	}, c.observeOrphan, planOrphan)
	c.Group = runner.NewGroup(controllerName, c.jobs, c.orphans)
	return c, errors.Join(
		runner.Watch(c.jobs.Runner, jobs.Informer(), c.jobChanged),
		runner.Watch(c.jobs.Runner, pods.Informer(), c.podChanged),
	)
}

// addGangs adds the caches by which pods are scheduled together. Their changes wake no Job,
// but no Job is reconciled before they have been read.
func (c *Controller) addGangs(in schedulinginformers.Interface, caches reconcile.Caches) ([]toolscache.InformerSynced, error) {
	if in == nil {
		return nil, nil
	}
	workloads, groups := in.Workloads().Informer(), in.PodGroups().Informer()
	if err := errors.Join(cache.Ensure(workloads, workloadsByJob), cache.Ensure(groups, groupsByWorkload)); err != nil {
		return nil, err
	}
	c.workloads, c.groups = workloads.GetIndexer(), groups.GetIndexer()
	caches[schedulingv1alpha2.Resource("workloads")], caches[schedulingv1alpha2.Resource("podgroups")] = c.workloads, c.groups
	return []toolscache.InformerSynced{workloads.HasSynced, groups.HasSynced}, nil
}

// note keeps what a plan remembers of a Job, unless the Job went meanwhile: the event of
// that has passed.
func (c *Controller) note(key Key, what any) {
	r := what.(remembered)
	c.memory.remember(r)
	if job, err := reconcile.Cached[batchv1.Job](c.jobIndex, key); err != nil || job.UID != r.job {
		c.memory.remember(remembered{job: r.job})
	}
}
