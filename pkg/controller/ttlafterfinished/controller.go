package ttlafterfinished

import (
	"context"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	batchinformers "k8s.io/client-go/informers/batch/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/runner"
)

// Controller deletes Jobs whose time has come.
type Controller struct {
	*reconcile.Controller[types.NamespacedName]
	jobs toolscache.Store
	live client.Reader
}

// New returns the controller, which is not running yet. Workers is how many Jobs are
// looked at at once.
func New(jobs batchinformers.JobInformer, hand reconcile.Hand, workers int) (*Controller, error) {
	register()
	c := &Controller{jobs: jobs.Informer().GetStore(), live: hand.Reader()}
	c.Controller = reconcile.New(reconcile.Options[types.NamespacedName]{
		Runner: runner.Options[types.NamespacedName]{Name: "ttl-after-finished-controller", Queue: "ttl_jobs_to_delete", Workers: workers},
		Hand:   hand, Caches: reconcile.Caches{batchv1.Resource("jobs"): c.jobs},
	}, c.observe, plan)
	return c, runner.Watch(c.Runner, jobs.Informer(), jobChanged)
}

// jobChanged wakes a Job that has ended and has a time to live, and no other.
func jobChanged(change runner.Change[batchv1.Job], wake runner.Wake[types.NamespacedName]) {
	if change.New != nil && concerns(change.New) {
		wake.Add(client.ObjectKeyFromObject(change.New))
	}
}

// observe reads a Job live whose time has come, as far as the cache knows.
func (c *Controller) observe(ctx context.Context, key types.NamespacedName) (observed, error) {
	job, err := reconcile.Cached[batchv1.Job](c.jobs, key)
	if err != nil || !due(job, c.Clock().Now()) {
		return observed{cached: job}, err
	}
	live, err := reconcile.Live[batchv1.Job](ctx, c.live, key)
	if err != nil {
		return observed{}, fmt.Errorf("read job %s before its deletion: %w", key, err)
	}
	return observed{cached: job, looked: true, live: live}, nil
}
