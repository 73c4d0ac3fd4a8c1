package cronjob

import (
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

var jobResource = batchv1.Resource("jobs")

// Controller starts the Jobs of CronJobs.
type Controller struct {
	*reconcile.Controller[types.NamespacedName]
	cronJobs toolscache.Store
	jobs     toolscache.Indexer
	live     client.Reader
}

// New returns the controller, which is not running yet. Workers is how many CronJobs
// are worked on at once.
func New(cronJobs batchinformers.CronJobInformer, jobs batchinformers.JobInformer, hand reconcile.Hand, workers int) (*Controller, error) {
	register()
	if err := cache.Ensure(jobs.Informer(), cache.ByController); err != nil {
		return nil, err
	}
	c := &Controller{cronJobs: cronJobs.Informer().GetStore(), jobs: jobs.Informer().GetIndexer(), live: hand.Reader()}
	c.Controller = reconcile.New(reconcile.Options[types.NamespacedName]{
		Runner: runner.Options[types.NamespacedName]{Name: "cronjob-controller", Queue: "cronjob", Workers: workers, Object: reconcile.ObjectIn[types.NamespacedName](c.cronJobs)},
		Hand:   hand, Caches: reconcile.Caches{batchv1.Resource("cronjobs"): c.cronJobs, jobResource: c.jobs},
	}, c.observe, plan)
	return c, c.watch(cronJobs.Informer(), jobs.Informer())
}
