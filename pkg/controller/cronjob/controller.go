package cronjob

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	"k8s.io/client-go/kubernetes"
	batchlisters "k8s.io/client-go/listers/batch/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/utils/clock"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/consistency"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

const (
	// Name is the controller's canonical name.
	Name = "cronjob-controller"

	queue = "cronjob"
)

var (
	cronJobResource = schema.GroupResource{Group: batchv1.GroupName, Resource: "cronjobs"}
	jobResource     = schema.GroupResource{Group: batchv1.GroupName, Resource: "jobs"}
)

// Options are the plain values a Controller runs with.
type Options struct {
	// Workers is how many CronJobs are worked on at once.
	Workers int
	// Clock is the process's clock; the real one by default.
	Clock clock.WithTicker
}

// Controller starts the Jobs of CronJobs.
type Controller struct {
	*runner.Runner[types.NamespacedName]

	cronJobs batchlisters.CronJobLister
	jobs     toolscache.Indexer
	client   kubernetes.Interface
	recorder record.EventRecorder
	writes   *consistency.Tracker[types.NamespacedName]
	clock    clock.PassiveClock
}

// New returns the controller, which is not running yet.
func New(cronJobs batchinformers.CronJobInformer, jobs batchinformers.JobInformer,
	client kubernetes.Interface, recorder record.EventRecorder, o Options) (*Controller, error) {
	register()
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if err := cache.Ensure(jobs.Informer(), cache.ByController); err != nil {
		return nil, err
	}
	c := &Controller{
		cronJobs: cronJobs.Lister(), jobs: jobs.Informer().GetIndexer(),
		client: client, recorder: recorder, clock: o.Clock,
		writes: consistency.NewTracker[types.NamespacedName](map[schema.GroupResource]consistency.Store{
			cronJobResource: cronJobs.Informer().GetStore(),
			jobResource:     jobs.Informer().GetStore(),
		}),
	}
	c.Runner = runner.New(runner.Options[types.NamespacedName]{
		Name: Name, Queue: queue, Workers: o.Workers, Clock: o.Clock, Writes: c.writes,
		Events: recorder, Object: c.object,
	}, c.sync)
	return c, c.watch(cronJobs.Informer(), jobs.Informer())
}

// object is what an event about the key is about.
func (c *Controller) object(key types.NamespacedName) runtime.Object {
	cron, err := c.cronJobs.CronJobs(key.Namespace).Get(key.Name)
	if err != nil {
		return nil
	}
	return cron
}

// sync starts what is due and brings the status up to date.
func (c *Controller) sync(ctx context.Context, key types.NamespacedName) runner.Result {
	cached, err := c.cronJobs.CronJobs(key.Namespace).Get(key.Name)
	if apierrors.IsNotFound(err) {
		c.writes.Forget(key)
		return runner.Done()
	}
	if err != nil {
		return runner.Done(fmt.Errorf("read cron job %s: %w", key, err))
	}
	o, err := c.observe(ctx, cached)
	if err != nil {
		return runner.Done(err)
	}
	p := decide(o, c.clock.Now())
	return c.apply(ctx, key, o.cron, p).Because(p.explain())
}
