package app

import (
	"context"
	"net/http"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/cronjob"
)

var (
	cronJobsResource = batchv1.SchemeGroupVersion.WithResource("cronjobs")
	jobsResource     = batchv1.SchemeGroupVersion.WithResource("jobs")
)

func startCronJobController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	if err := cc.require(cronJobsResource, jobsResource); err != nil {
		return nil, false, err
	}
	hand, err := cc.hand(ctx, "cronjob-controller", "cronjob-controller")
	if err != nil {
		return nil, false, err
	}
	batch := cc.Informers.Batch().V1()
	c, err := cronjob.New(batch.CronJobs(), batch.Jobs(), hand, int(cc.Config.CronJobController.ConcurrentCronJobSyncs))
	return cc.run(ctx, c, err)
}
