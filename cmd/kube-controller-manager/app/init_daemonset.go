package app

import (
	"context"
	"net/http"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/daemonset"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
)

var (
	daemonSetsResource          = appsv1.SchemeGroupVersion.WithResource("daemonsets")
	controllerRevisionsResource = appsv1.SchemeGroupVersion.WithResource("controllerrevisions")
)

func startDaemonSetController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	if err := cc.require(daemonSetsResource, controllerRevisionsResource); err != nil {
		return nil, false, err
	}
	hand, err := cc.hand(ctx, "daemon-set-controller", "daemonset-controller")
	if err != nil {
		return nil, false, err
	}
	apps, core := cc.Informers.Apps().V1(), cc.Informers.Core().V1()
	c, err := daemonset.New(apps.DaemonSets(), apps.ControllerRevisions(), core.Pods(), core.Nodes(), hand, daemonset.Options{
		Workers:       int(cc.Config.DaemonSetController.ConcurrentDaemonSetSyncs),
		CompareTaints: cc.Gates.Enabled(features.TaintTolerationComparisonOperators),

		RejectedPodBackoff: cc.process.RejectedPodBackoff,
	})
	return cc.run(ctx, c, err)
}
