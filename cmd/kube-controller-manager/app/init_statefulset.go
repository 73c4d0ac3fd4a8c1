package app

import (
	"context"
	"net/http"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/statefulset"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
)

func startStatefulSetController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	if err := cc.require(appsv1.SchemeGroupVersion.WithResource("statefulsets")); err != nil {
		return nil, false, err
	}
	hand, err := cc.hand(ctx, "statefulset-controller", "statefulset-controller")
	if err != nil {
		return nil, false, err
	}
	apps, core := cc.Informers.Apps().V1(), cc.Informers.Core().V1()
	c, err := statefulset.New(statefulset.Caches{
		Sets: apps.StatefulSets(), Revisions: apps.ControllerRevisions(), Pods: core.Pods(), Claims: core.PersistentVolumeClaims(),
	}, hand, statefulset.Options{
		Workers:           int(cc.Config.StatefulSetController.ConcurrentStatefulSetSyncs),
		Clock:             cc.Clock,
		SemanticRevisions: cc.Gates.Enabled(features.StatefulSetSemanticRevisionComparison),
		MaxUnavailable:    cc.Gates.Enabled(features.MaxUnavailableStatefulSet),

		RejectedPodBackoff: cc.process.RejectedPodBackoff,
	})
	return cc.run(ctx, c, err)
}
