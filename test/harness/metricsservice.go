package harness

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	custom "k8s.io/metrics/pkg/apis/custom_metrics/v1beta2"
	external "k8s.io/metrics/pkg/apis/external_metrics/v1beta1"
	metricsv1beta1 "k8s.io/metrics/pkg/apis/metrics/v1beta1"
)

const (
	metricsService = "metrics-api"
	apiServices    = "/apis/apiregistration.k8s.io/v1/apiservices"
	// routed is how long the API server may take to route to an API, or no longer.
	routed = 60 * time.Second
)

var metricsVersions = []schema.GroupVersion{metricsv1beta1.SchemeGroupVersion, custom.SchemeGroupVersion, external.SchemeGroupVersion}

// announce registers the groups under a name that stands for this machine, and
// waits until the API server routes to them.
func (m *MetricsAPI) announce(ctx context.Context) error {
	if _, err := m.client.CoreV1().Services(metav1.NamespaceDefault).Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: metricsService},
		Spec:       corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: "localhost"},
	}, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the Service of the metrics API: %w", err)
	}
	rest := m.client.Discovery().RESTClient()
	for _, version := range metricsVersions {
		service := fmt.Sprintf(`{"apiVersion":"apiregistration.k8s.io/v1","kind":"APIService","metadata":{"name":"%[2]s.%[1]s"},
			"spec":{"group":%[1]q,"version":%[2]q,"groupPriorityMinimum":100,"versionPriority":100,"insecureSkipTLSVerify":true,
			"service":{"name":%[3]q,"namespace":"default","port":%[4]d}}}`, version.Group, version.Version, metricsService, m.port)
		if err := rest.Post().AbsPath(apiServices).SetHeader("Content-Type", "application/json").Body([]byte(service)).Do(ctx).Error(); err != nil {
			return fmt.Errorf("create the APIService of %s: %w", version, err)
		}
	}
	for _, version := range metricsVersions {
		if err := WaitFor(ctx, routed, func(ctx context.Context) error {
			return rest.Get().AbsPath("/apis/" + version.String()).Do(ctx).Error()
		}); err != nil {
			return fmt.Errorf("reach %s: %w", version, err)
		}
	}
	return nil
}

// Stop takes the API out of the cluster, waits until the API server has noticed
// and ends the server.
func (m *MetricsAPI) Stop(ctx context.Context) error {
	defer func() { _ = m.server.Close() }()
	rest := m.client.Discovery().RESTClient()
	var errs []error
	for _, version := range metricsVersions {
		errs = append(errs, unlessGone(rest.Delete().AbsPath(apiServices, version.Version+"."+version.Group).Do(ctx).Error()))
	}
	errs = append(errs, unlessGone(m.client.CoreV1().Services(metav1.NamespaceDefault).Delete(ctx, metricsService, metav1.DeleteOptions{})))
	for _, version := range metricsVersions {
		errs = append(errs, WaitFor(ctx, routed, func(ctx context.Context) error {
			err := rest.Get().AbsPath("/apis/" + version.String()).Do(ctx).Error()
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("%s is still there: %w", version, err)
		}))
	}
	return errors.Join(errs...)
}

func unlessGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// discoveryOf is what a group serves. Metrics that are not resources of their own
// need not be listed.
func discoveryOf(group, version string) metav1.APIResourceList {
	list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "APIResourceList"},
		GroupVersion: group + "/" + version, APIResources: []metav1.APIResource{}}
	if group == metricsv1beta1.GroupName {
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: "pods", SingularName: "pod", Kind: "PodMetrics", Namespaced: true, Verbs: metav1.Verbs{"list"}})
	}
	return list
}
