package app

import (
	"context"
	"net/http"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/job"
)

func startJobController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	if err := cc.require(batchv1.SchemeGroupVersion.WithResource("jobs")); err != nil {
		return nil, false, err
	}
	hand, err := cc.hand(ctx, "job-controller", "job-controller")
	if err != nil {
		return nil, false, err
	}
	c, err := job.New(cc.Informers.Batch().V1().Jobs(), cc.Informers.Core().V1().Pods(), hand, job.Options{
		Workers:            int(cc.Config.JobController.ConcurrentJobSyncs),
		RejectedPodBackoff: cc.process.RejectedPodBackoff,
	})
	return cc.run(ctx, c, err)
}
