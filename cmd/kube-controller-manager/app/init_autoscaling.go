package app

import (
	"context"
	"fmt"
	"net/http"
	"time"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/scale"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/podautoscaler"
	"github.com/kube-kcm/kube-controller-manager/pkg/features"
)

const (
	autoscalerAccount = "horizontal-pod-autoscaler"
	// metricsPatience is how long a metrics API may take for an answer. One that
	// never answers is not to hold all workers.
	metricsPatience = 30 * time.Second
)

var horizontalPodAutoscalersResource = autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers")

func startHorizontalPodAutoscalerController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	if err := cc.require(horizontalPodAutoscalersResource); err != nil {
		return nil, false, err
	}
	config, err := cc.Clients.Config(autoscalerAccount)
	if err != nil {
		return nil, false, fmt.Errorf("configure the client of %s: %w", autoscalerAccount, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, false, fmt.Errorf("make the client of %s: %w", autoscalerAccount, err)
	}
	scales, err := scaleClient(cc, config, client.Discovery())
	if err != nil {
		return nil, false, err
	}
	settings := cc.Config.HPAController
	period := settings.HorizontalPodAutoscalerSyncPeriod.Duration
	metrics, err := metricsClients(ctx, cc, config, period)
	if err != nil {
		return nil, false, err
	}
	c, err := podautoscaler.New(cc.Informers.Autoscaling().V2().HorizontalPodAutoscalers(), cc.Informers.Core().V1().Pods(),
		client, scales, cc.RESTMapper, metrics, cc.Recorder(ctx, client, podautoscaler.EventComponent), podautoscaler.Options{
			Workers:                int(settings.ConcurrentHorizontalPodAutoscalerSyncs),
			Clock:                  cc.Clock,
			Period:                 period,
			DownscaleStabilization: settings.HorizontalPodAutoscalerDownscaleStabilizationWindow.Duration,
			Tolerance:              settings.HorizontalPodAutoscalerTolerance,
			CPUInitialization:      settings.HorizontalPodAutoscalerCPUInitializationPeriod.Duration,
			ReadinessDelay:         settings.HorizontalPodAutoscalerInitialReadinessDelay.Duration,
			ConfigurableTolerance:  cc.Gates.Enabled(features.HPAConfigurableTolerance),
			ScaleToZero:            cc.Gates.Enabled(features.HPAScaleToZero),
			PodLevelResources:      cc.Gates.Enabled(features.PodLevelResources),
		})
	return cc.run(ctx, c, err)
}

// scaleClient reads scales in protobuf where the API server has that, and writes
// JSON, which custom resources take too.
func scaleClient(cc ControllerContext, config *rest.Config, served discovery.DiscoveryInterface) (scale.ScalesGetter, error) {
	config = rest.CopyConfig(config)
	config.AcceptContentTypes, config.ContentType = runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON, runtime.ContentTypeJSON
	scales, err := scale.NewForConfig(config, cc.RESTMapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(served))
	if err != nil {
		return nil, fmt.Errorf("make the scale client of %s: %w", autoscalerAccount, err)
	}
	return scales, nil
}

// metricsClients make the clients of the metrics APIs, whose servers may come
// and go while this process runs.
func metricsClients(ctx context.Context, cc ControllerContext, config *rest.Config, period time.Duration) (podautoscaler.Metrics, error) {
	config = rest.CopyConfig(config)
	config.Timeout = metricsPatience
	var metrics podautoscaler.Metrics
	var err error
	if metrics.Resource, err = resourceclient.NewForConfig(config); err != nil {
		return metrics, fmt.Errorf("make the metrics client of %s: %w", autoscalerAccount, err)
	}
	if metrics.External, err = external_metrics.NewForConfig(config); err != nil {
		return metrics, fmt.Errorf("make the external metrics client of %s: %w", autoscalerAccount, err)
	}
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return metrics, fmt.Errorf("make the discovery client of %s: %w", autoscalerAccount, err)
	}
	cached := memory.NewMemCacheClient(served)
	versions := &servedVersions{custom_metrics.NewAvailableAPIsGetter(cached), cached}
	metrics.Custom = custom_metrics.NewForConfig(config, cc.RESTMapper, versions)
	cc.background(ctx, func(ctx context.Context) {
		custom_metrics.PeriodicallyInvalidate(versions, max(period, time.Second), ctx.Done())
	})
	return metrics, nil
}

// servedVersions knows which version of the custom metrics API is served. What
// it knows, also that there is none, it knows for a period.
type servedVersions struct {
	custom_metrics.AvailableAPIsGetter
	cached discovery.CachedDiscoveryInterface
}

// Invalidate forgets what is known.
func (v *servedVersions) Invalidate() {
	v.AvailableAPIsGetter.Invalidate()
	v.cached.Invalidate()
}
