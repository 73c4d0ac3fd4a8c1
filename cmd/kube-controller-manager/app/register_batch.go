package app

import (
	"context"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/cronjob"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/job"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/ttlafterfinished"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func batchControllers() []Controller {
	v1 := batchv1.SchemeGroupVersion
	return []Controller{
		{Name: names.CronJobController, Needs: of(v1, "cronjobs", "jobs"),
			Account: "cronjob-controller", Events: "cronjob-controller", New: newCronJob},
		{Name: names.JobController, Needs: of(v1, "jobs"),
			Account: "job-controller", Events: "job-controller", New: newJob},
		{Name: names.TTLAfterFinishedController, Needs: of(v1, "jobs"),
			Account: "ttl-after-finished-controller", New: newTTLAfterFinished},
	}
}

func newCronJob(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	batch := cc.Informers.Batch().V1()
	return cronjob.New(batch.CronJobs(), batch.Jobs(), hand, int(cc.Config.CronJobController.ConcurrentCronJobSyncs))
}

func newJob(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	o := job.Options{
		Workers:            int(cc.Config.JobController.ConcurrentJobSyncs),
		RejectedPodBackoff: cc.process.RejectedPodBackoff,
		KeepStartTime:      !cc.Gates.Enabled(features.MutableSchedulingDirectivesForSuspendedJobs),
	}
	if cc.Gates.Enabled(features.WorkloadWithJob) {
		o.Gangs = cc.Informers.Scheduling().V1alpha2()
	}
	core := cc.Informers.Core().V1()
	return job.New(cc.Informers.Batch().V1().Jobs(), core.Pods(), core.Namespaces(), hand, o)
}

func newTTLAfterFinished(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	return ttlafterfinished.New(cc.Informers.Batch().V1().Jobs(), hand, int(cc.Config.TTLAfterFinishedController.ConcurrentTTLSyncs))
}
