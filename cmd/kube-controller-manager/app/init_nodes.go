package app

import (
	"context"
	"net/http"

	coordinationv1 "k8s.io/api/coordination/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/nodelifecycle"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/tainteviction"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
)

// taintEvictionWorkers is how many nodes, and how many pods, are looked at at once.
const taintEvictionWorkers = 8

var leasesResource = coordinationv1.SchemeGroupVersion.WithResource("leases")

func startNodeLifecycleController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	if err := cc.require(leasesResource); err != nil {
		return nil, false, err
	}
	hand, err := cc.hand(ctx, "node-controller", "node-controller")
	if err != nil {
		return nil, false, err
	}
	core := cc.Informers.Core().V1()
	config := cc.Config.NodeLifecycleController
	c, err := nodelifecycle.New(core.Nodes(), core.Pods(), cc.Informers.Coordination().V1().Leases(), hand, nodelifecycle.Options{
		NodeMonitorPeriod:         cc.Config.KubeCloudShared.NodeMonitorPeriod.Duration,
		NodeMonitorGracePeriod:    config.NodeMonitorGracePeriod.Duration,
		NodeStartupGracePeriod:    config.NodeStartupGracePeriod.Duration,
		NodeEvictionRate:          config.NodeEvictionRate,
		SecondaryNodeEvictionRate: config.SecondaryNodeEvictionRate,
		LargeClusterSizeThreshold: config.LargeClusterSizeThreshold,
		UnhealthyZoneThreshold:    config.UnhealthyZoneThreshold,
	})
	return cc.run(ctx, c, err)
}

func startTaintEvictionController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	hand, err := cc.hand(ctx, "node-controller", "taint-eviction-controller")
	if err != nil {
		return nil, false, err
	}
	core := cc.Informers.Core().V1()
	c, err := tainteviction.New(core.Nodes(), core.Pods(), hand, tainteviction.Options{
		Workers:              taintEvictionWorkers,
		TolerationComparison: cc.Gates.Enabled(features.TaintTolerationComparisonOperators),
	})
	return cc.run(ctx, c, err)
}
