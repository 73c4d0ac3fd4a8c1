package cronjob

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/cache"
)

// observe reads what the decision needs. What the caches have, they are asked
// for; where status and Jobs contradict each other the server is.
func (c *Controller) observe(ctx context.Context, cached *batchv1.CronJob) (observed, error) {
	o := observed{cron: cached}
	var err error
	if o.jobs, err = cache.Lookup[batchv1.Job](c.jobs, cache.ByController, string(cached.UID)); err != nil {
		return o, err
	}
	slices.SortFunc(o.jobs, func(a, b *batchv1.Job) int { return cmp.Compare(a.Name, b.Name) })
	if forgotten(cached, o.jobs) {
		live, err := c.client.BatchV1().CronJobs(cached.Namespace).Get(ctx, cached.Name, metav1.GetOptions{})
		if err != nil {
			return o, fmt.Errorf("read cron job %s/%s, which does not list a job that runs: %w", cached.Namespace, cached.Name, err)
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
		job, err := c.client.BatchV1().Jobs(o.cron.Namespace).Get(ctx, ref.Name, metav1.GetOptions{})
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, fmt.Errorf("read job %s/%s, which is active and missing: %w", o.cron.Namespace, ref.Name, err)
		default:
			found[ref.UID] = job.UID == ref.UID
		}
	}
	return found, nil
}
