package app

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kcmconfig "k8s.io/kube-controller-manager/config/v1alpha1"
	"k8s.io/utils/ptr"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/endpoints"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/ephemeralvolume"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/garbagecollector"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/namespace"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/podgc"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/replicationcontroller"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/resourcequota"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func coreControllers() []Controller {
	return []Controller{
		{Name: names.EndpointsController,
			Account: "endpoint-controller", Events: "endpoint-controller", New: newEndpoints},
		{Name: names.EphemeralVolumeController,
			Account: "ephemeral-volume-controller", Events: "ephemeral_volume", New: newEphemeralVolume},
		// The reads before each deletion count as well.
		{Name: names.GarbageCollectorController, Without: func(c *kcmconfig.KubeControllerManagerConfiguration) string {
			if !ptr.Deref(c.GarbageCollectorController.EnableGarbageCollector, true) {
				return "--enable-garbage-collector is false"
			}
			return ""
		}, Account: "generic-garbage-collector", Events: garbagecollector.EventComponent, QPS: 2, New: newGarbageCollector},
		// An emptied namespace costs a call or two for each kind of object that the API
		// server knows, so its client may do more than others.
		{Name: names.NamespaceController, Account: "namespace-controller", QPS: 20, Burst: 100, New: newNamespace},
		{Name: names.PodGarbageCollectorController, Account: "pod-garbage-collector", New: newPodGarbageCollector},
		{Name: names.ReplicationControllerController,
			Account: "replication-controller", Events: "replication-controller", New: newReplicationController},
		{Name: names.ResourceQuotaController,
			Account: "resourcequota-controller", Events: "resourcequota-controller", New: newResourceQuota},
		{Name: names.ServiceLBController, Cloud: true, Account: "service-controller", New: newServiceLB},
	}
}

func newEndpoints(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	core := cc.Informers.Core().V1()
	return endpoints.New(core.Services(), core.Pods(), core.Endpoints(), hand, endpoints.Options{
		Workers:     int(cc.Config.EndpointController.ConcurrentEndpointSyncs),
		BatchPeriod: cc.Config.EndpointController.EndpointUpdatesBatchPeriod.Duration,
	})
}

func newEphemeralVolume(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	core := cc.Informers.Core().V1()
	return ephemeralvolume.New(core.Pods(), core.PersistentVolumeClaims(), hand,
		int(cc.Config.EphemeralVolumeController.ConcurrentEphemeralVolumeSyncs))
}

func newGarbageCollector(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	settings := cc.Config.GarbageCollectorController
	var ignored []schema.GroupResource
	for _, r := range settings.GCIgnoredResources {
		ignored = append(ignored, schema.GroupResource{Group: r.Group, Resource: r.Resource})
	}
	return garbagecollector.New(cc.Monitors(), cc.RESTMapper, hand,
		garbagecollector.Options{Workers: int(settings.ConcurrentGCSyncs), Ignored: ignored}), nil
}

func newNamespace(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	kinds, err := cc.discovery()
	if err != nil {
		return nil, err
	}
	return namespace.New(cc.Informers.Core().V1().Namespaces(), hand, namespace.Options{
		Workers:  int(cc.Config.NamespaceController.ConcurrentNamespaceSyncs),
		Resync:   cc.Config.NamespaceController.NamespaceSyncPeriod.Duration,
		Discover: kinds.ServerPreferredNamespacedResources,
	})
}

func newPodGarbageCollector(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	core := cc.Informers.Core().V1()
	return podgc.New(core.Pods(), core.Nodes(), hand, podgc.Options{
		Threshold: int(cc.Config.PodGCController.TerminatedPodGCThreshold),
	})
}

func newReplicationController(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	core := cc.Informers.Core().V1()
	return replicationcontroller.New(core.ReplicationControllers(), core.Pods(), hand, replicationcontroller.Options{
		Workers:            int(cc.Config.ReplicationController.ConcurrentRCSyncs),
		PodDeletionCost:    cc.Gates.Enabled(features.PodDeletionCost),
		RejectedPodBackoff: cc.process.RejectedPodBackoff,
	})
}

func newResourceQuota(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	core := cc.Informers.Core().V1()
	in := resourcequota.Informers{Quotas: core.ResourceQuotas(), Pods: core.Pods()}
	// What is asked for here is cached whole, and the monitors find it so.
	core.Pods().Informer()
	core.Services().Informer()
	core.PersistentVolumeClaims().Informer()
	if cc.require(of(resourceapi.SchemeGroupVersion, "resourceclaims", "deviceclasses")...) == nil {
		cc.Informers.Resource().V1().ResourceClaims().Informer()
		if cc.Gates.Enabled(features.DRAExtendedResource) {
			in.DeviceClasses = cc.Informers.Resource().V1().DeviceClasses()
		}
	}
	return resourcequota.New(in, cc.Monitors(), hand, resourcequota.Options{
		Workers:        int(cc.Config.ResourceQuotaController.ConcurrentResourceQuotaSyncs),
		SyncPeriod:     cc.Config.ResourceQuotaController.ResourceQuotaSyncPeriod.Duration,
		IgnorePodLevel: !cc.Gates.Enabled(features.PodLevelResources),
		IgnoreExtended: !cc.Gates.Enabled(features.DRAExtendedResource),
	})
}
