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
	client, events, err := cc.clientAndEvents(ctx, "cronjob-controller", "cronjob-controller")
	if err != nil {
		return nil, false, err
	}
	batch := cc.Informers.Batch().V1()
	c, err := cronjob.New(batch.CronJobs(), batch.Jobs(), client, events, cronjob.Options{
		Workers: int(cc.Config.CronJobController.ConcurrentCronJobSyncs), Clock: cc.Clock,
	})
	return cc.run(ctx, c, err)
}
