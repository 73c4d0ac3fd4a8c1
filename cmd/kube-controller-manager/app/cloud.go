package app

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/cloud"
	"github.com/kube-kcm/kube-controller-manager/pkg/informers/cache"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// openCloud makes the cloud provider that the flags name, if this build has it, and finds
// out what is wrong with it before the process competes for the lease.
func (p *process) openCloud(ctx context.Context) error {
	shared := &p.ComponentConfig.KubeCloudShared
	provider, err := cloud.Open(shared.CloudProvider.Name, shared.CloudProvider.CloudConfigFile)
	if provider == nil || err != nil {
		return err
	}
	logger := klog.FromContext(ctx)
	switch {
	case provider.HasClusterID():
	case !shared.AllowUntaggedCloud:
		return fmt.Errorf("--cloud-provider=%s: %w", shared.CloudProvider.Name, cloud.ErrNoClusterID)
	default:
		logger.Info("The cloud provider has no ClusterID, and will need one in the future: please tag the cluster", "provider", provider.ProviderName())
	}
	cc := ControllerContext{Config: &p.ComponentConfig}
	if _, has := provider.Routes(); has && ptr.Deref(shared.ConfigureCloudRoutes, true) && cc.enabled(names.NodeRouteController) {
		if _, err := cloud.ClusterCIDRs(shared.ClusterCIDR); err != nil {
			return err
		}
	}
	logger.Info("The loops of the cloud run in this process", "provider", provider.ProviderName())
	p.cloud = provider
	return nil
}

// addCloud makes the caches of the loops of the cloud, and gives the provider what it works
// with: clients, and the caches if it asks for them.
func (cc *ControllerContext) addCloud(ctx context.Context) error {
	provider := cc.process.cloud
	if provider == nil {
		return nil
	}
	cc.wholes = cc.narrowed(func(client kubernetes.Interface, resync time.Duration) *cache.Factory {
		return cache.NewFactory(client, resync)
	})
	// Under leader migration there are two terms, which end together.
	cc.process.cloudOnce.Do(func() {
		provider.Initialize(cc.cloudClients(), ctx.Done())
		if user, ok := provider.(cloudprovider.InformerUser); ok {
			user.SetInformers(cc.wholes)
		}
	})
	return nil
}

// cloudOptions are what the loop of the row is made from.
func (cc ControllerContext) cloudOptions() (cloud.Options, error) {
	config, err := cc.configOf(cc.row)
	return cloud.Options{
		Name: cc.row.Name, Cloud: cc.process.cloud, Config: config, Informers: cc.wholes,
		ClusterName: cc.Config.KubeCloudShared.ClusterName, Metrics: runningMetrics(),
		Wrote: func(verb string, err error) {
			countWrite(act.Write{Controller: cc.row.Name, Verb: verb, Err: err})
		},
	}, err
}

// cloudLoop ends the constructors of the cloud's loops: one that the provider does not
// support is left out.
func (cc ControllerContext) cloudLoop(loop *cloud.Loop, err error) (Loop, error) {
	switch {
	case errors.Is(err, cloud.ErrNotSupported):
		return nil, skip("cloud provider %q: %v", cc.process.cloud.ProviderName(), err)
	case err != nil:
		return nil, err
	}
	return loop, nil
}

func newServiceLB(_ context.Context, cc ControllerContext, _ reconcile.Hand) (Loop, error) {
	options, err := cc.cloudOptions()
	if err != nil {
		return nil, err
	}
	return cc.cloudLoop(cloud.ServiceLB(options, int(cc.Config.ServiceController.ConcurrentServiceSyncs)))
}

func newNodeRoutes(_ context.Context, cc ControllerContext, _ reconcile.Hand) (Loop, error) {
	options, err := cc.cloudOptions()
	if err != nil {
		return nil, err
	}
	shared := cc.Config.KubeCloudShared
	if _, has := options.Cloud.Routes(); !has {
		return cc.cloudLoop(nil, fmt.Errorf("routes: %w", cloud.ErrNotSupported))
	}
	ranges, err := cloud.ClusterCIDRs(shared.ClusterCIDR)
	if err != nil {
		return nil, err
	}
	return cc.cloudLoop(cloud.NodeRoutes(options, ranges, shared.RouteReconciliationPeriod.Duration))
}

func newCloudNodeLifecycle(_ context.Context, cc ControllerContext, _ reconcile.Hand) (Loop, error) {
	options, err := cc.cloudOptions()
	if err != nil {
		return nil, err
	}
	return cc.cloudLoop(cloud.NodeLifecycle(options, cc.Config.KubeCloudShared.NodeMonitorPeriod.Duration))
}
