package cronjob

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// observed is what is decided on.
type observed struct {
	cron *batchv1.CronJob
	// jobs are those that the CronJob controls.
	jobs []*batchv1.Job
	// live are active Jobs that the cache does not show and that exist.
	live map[types.UID]bool
}

// observe reads what the plan needs from the caches, and live where status and Jobs
// contradict each other.
func (c *Controller) observe(ctx context.Context, key types.NamespacedName) (observed, error) {
	cached, err := reconcile.Cached[batchv1.CronJob](c.cronJobs, key)
	if err != nil {
		return observed{}, err
	}
	o := observed{cron: cached}
	if o.jobs, err = cache.Controlled[batchv1.Job](c.jobs, cached.Namespace, cached.UID); err != nil {
		return o, err
	}
	slices.SortFunc(o.jobs, func(a, b *batchv1.Job) int { return cmp.Compare(a.Name, b.Name) })
	if forgotten(cached, o.jobs) {
		live := &batchv1.CronJob{}
		if err := c.live.Get(ctx, key, live); err != nil {
			return o, fmt.Errorf("read CronJob %s, which does not list a Job that runs: %w", key, err)
		}
		if live.UID == cached.UID {
			o.cron = live
		}
	}
	o.live, err = c.alive(ctx, o)
	return o, err
}

// alive looks for active Jobs that the cache does not show.
func (c *Controller) alive(ctx context.Context, o observed) (map[types.UID]bool, error) {
	found := map[types.UID]bool{}
	for _, ref := range missing(&o.cron.Status, o.jobs) {
		if ref.Name == "" || len(content.IsPathSegmentName(ref.Name)) > 0 {
			continue // somebody has written it: no Job has such a name
		}
		job, err := reconcile.Live[batchv1.Job](ctx, c.live, client.ObjectKey{Namespace: o.cron.Namespace, Name: ref.Name})
		switch {
		case err != nil:
			return nil, fmt.Errorf("read Job %s/%s, which is active and missing: %w", o.cron.Namespace, ref.Name, err)
		case job != nil:
			// What somebody has taken away wakes nobody when it ends.
			found[ref.UID] = job.UID == ref.UID && (ended(job) == "" || metav1.IsControlledBy(job, o.cron))
		}
	}
	return found, nil
}
