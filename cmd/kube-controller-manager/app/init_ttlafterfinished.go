package app

import (
	"context"
	"net/http"

	batchv1 "k8s.io/api/batch/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/ttlafterfinished"
)

var jobsResource = batchv1.SchemeGroupVersion.WithResource("jobs")

func startTTLAfterFinishedController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	if err := cc.require(jobsResource); err != nil {
		return nil, false, err
	}
	hand, err := cc.hand(ctx, "ttl-after-finished-controller", "")
	if err != nil {
		return nil, false, err
	}
	c, err := ttlafterfinished.New(cc.Informers.Batch().V1().Jobs(), hand, int(cc.Config.TTLAfterFinishedController.ConcurrentTTLSyncs))
	return cc.run(ctx, c, err)
}
