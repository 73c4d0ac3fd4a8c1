package app

import (
	"context"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/scale"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
	resourceclient "k8s.io/metrics/pkg/client/clientset/versioned/typed/metrics/v1beta1"
	"k8s.io/metrics/pkg/client/custom_metrics"
	"k8s.io/metrics/pkg/client/external_metrics"
)

// metricsPatience is how long a metrics API may take for an answer. One that never
// answers is not to hold all workers.
const metricsPatience = 30 * time.Second

// autoscalerReader reads scales and metrics.
type autoscalerReader struct {
	scales   scale.ScalesGetter
	pods     resourceclient.PodMetricsesGetter
	custom   custom_metrics.CustomMetricsClient
	external external_metrics.ExternalMetricsClient
}

func (r autoscalerReader) Scale(ctx context.Context, of schema.GroupResource, namespace, name string) (*autoscalingv1.Scale, error) {
	return r.scales.Scales(namespace).Get(ctx, of, name, metav1.GetOptions{})
}

func (r autoscalerReader) PodMetrics(ctx context.Context, namespace string, of labels.Selector) (*metricsv1beta1.PodMetricsList, error) {
	return r.pods.PodMetricses(namespace).List(ctx, metav1.ListOptions{LabelSelector: of.String()})
}

func (r autoscalerReader) CustomMetrics(namespace string) custom_metrics.MetricsInterface {
	if namespace == "" {
		return r.custom.RootScopedMetrics()
	}
	return r.custom.NamespacedMetrics(namespace)
}

func (r autoscalerReader) ExternalMetrics(namespace string) external_metrics.MetricsInterface {
	return r.external.NamespacedMetrics(namespace)
}

// autoscalerReaderOf makes the clients that read, each with a rate of its own. The servers
// of the metrics APIs may come and go while this process runs.
func autoscalerReaderOf(ctx context.Context, cc ControllerContext, config *rest.Config) (r autoscalerReader, err error) {
	served, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return r, fmt.Errorf("make the discovery client of %s: %w", cc.row.Account, err)
	}
	// Scales are read in protobuf where the API server has that.
	scales := cc.another(config)
	scales.AcceptContentTypes, scales.ContentType = runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON, runtime.ContentTypeJSON
	if r.scales, err = scale.NewForConfig(scales, cc.RESTMapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(served)); err != nil {
		return r, fmt.Errorf("make the scale client of %s: %w", cc.row.Account, err)
	}
	config = cc.another(config)
	config.Timeout = metricsPatience
	if r.pods, err = resourceclient.NewForConfig(config); err != nil {
		return r, fmt.Errorf("make the metrics client of %s: %w", cc.row.Account, err)
	}
	if r.external, err = external_metrics.NewForConfig(cc.another(config)); err != nil {
		return r, fmt.Errorf("make the external metrics client of %s: %w", cc.row.Account, err)
	}
	if served, err = discovery.NewDiscoveryClientForConfig(cc.another(config)); err != nil {
		return r, fmt.Errorf("make the discovery client of the metrics of %s: %w", cc.row.Account, err)
	}
	cached := memory.NewMemCacheClient(served)
	versions := &servedVersions{custom_metrics.NewAvailableAPIsGetter(cached), cached}
	r.custom = custom_metrics.NewForConfig(cc.another(config), cc.RESTMapper, versions)
	period := cc.Config.HPAController.HorizontalPodAutoscalerSyncPeriod.Duration
	cc.background(ctx, func(ctx context.Context) {
		custom_metrics.PeriodicallyInvalidate(versions, max(period, time.Second), ctx.Done())
	})
	return r, nil
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
