package app

import (
	"context"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/metrics/prometheus/controllers"
	kcmconfig "k8s.io/kube-controller-manager/config/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/nodeipam"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/nodelifecycle"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/tainteviction"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/ttl"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// ipamRate is by how much the rate of requests is raised, because thousands of nodes may
// register within a minute and none of them runs a pod before it has its CIDR.
const ipamRate = 10

func nodeControllers() []Controller {
	return []Controller{
		{Name: names.CloudNodeLifecycleController, Cloud: true, Account: "node-controller", New: newCloudNodeLifecycle},
		{Name: names.NodeIpamController, Without: func(c *kcmconfig.KubeControllerManagerConfiguration) string {
			if !c.KubeCloudShared.AllocateNodeCIDRs {
				return "--allocate-node-cidrs is false"
			}
			return ""
		}, Account: "node-controller", Events: "cidrAllocator", QPS: ipamRate, Burst: ipamRate, New: newNodeIPAM},
		{Name: names.NodeLifecycleController, Needs: of(coordinationv1.SchemeGroupVersion, "leases"),
			Account: "node-controller", Events: "node-controller", New: newNodeLifecycle},
		{Name: names.NodeRouteController, Cloud: true, Without: func(c *kcmconfig.KubeControllerManagerConfiguration) string {
			if !ptr.Deref(c.KubeCloudShared.ConfigureCloudRoutes, true) {
				return "--configure-cloud-routes is false"
			}
			return ""
		}, Account: "route-controller", New: newNodeRoutes},
		{Name: names.TaintEvictionController, Account: "node-controller", Events: "taint-eviction-controller", New: newTaintEviction},
		{Name: names.TTLController, Account: "ttl-controller", New: newTTL},
	}
}

// runningMetrics is the gauge running_managed_controllers, which the original has too.
func runningMetrics() *controllers.ControllerManagerMetrics {
	controllers.Register()
	return controllers.NewControllerManagerMetrics(component)
}

func newNodeIPAM(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	config := cc.Config.NodeIPAMController
	options, err := nodeipam.Flags{
		ClusterCIDR: cc.Config.KubeCloudShared.ClusterCIDR,
		ServiceCIDR: config.ServiceCIDR, SecondaryServiceCIDR: config.SecondaryServiceCIDR,
		Mask: config.NodeCIDRMaskSize, MaskIPv4: config.NodeCIDRMaskSizeIPv4, MaskIPv6: config.NodeCIDRMaskSizeIPv6,
	}.Options()
	if err != nil {
		return nil, err
	}
	running := runningMetrics()
	running.ControllerStarted("nodeipam")
	cc.term.onClose(func() { running.ControllerStopped("nodeipam") })
	return nodeipam.New(cc.Informers.Core().V1().Nodes(), hand, options)
}

// newNodeLifecycle reads leases live with the credentials of the caches: the account of
// the controller may not.
func newNodeLifecycle(ctx context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	live, err := cc.handFor(ctx, Controller{Account: cc.row.Account, Root: true})
	if err != nil {
		return nil, err
	}
	core := cc.Informers.Core().V1()
	config, election := cc.Config.NodeLifecycleController, cc.Config.Generic.LeaderElection
	return nodelifecycle.New(core.Nodes(), core.Pods(), cc.Informers.Coordination().V1().Leases(), live.Reader(), hand, nodelifecycle.Options{
		NodeMonitorPeriod:         cc.Config.KubeCloudShared.NodeMonitorPeriod.Duration,
		NodeMonitorGracePeriod:    config.NodeMonitorGracePeriod.Duration,
		NodeStartupGracePeriod:    config.NodeStartupGracePeriod.Duration,
		NodeEvictionRate:          config.NodeEvictionRate,
		SecondaryNodeEvictionRate: config.SecondaryNodeEvictionRate,
		LargeClusterSizeThreshold: config.LargeClusterSizeThreshold,
		UnhealthyZoneThreshold:    config.UnhealthyZoneThreshold,
		OutageBrakeThreshold:      cc.process.NodeOutageBrakeThreshold,
		Leader:                    types.NamespacedName{Namespace: election.ResourceNamespace, Name: election.ResourceName},
	})
}

func newTaintEviction(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	core := cc.Informers.Core().V1()
	return tainteviction.New(core.Nodes(), core.Pods(), hand, tainteviction.Options{
		TolerationComparison: cc.Gates.Enabled(features.TaintTolerationComparisonOperators),
	})
}

func newTTL(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	return ttl.New(cc.Informers.Core().V1().Nodes(), hand)
}
