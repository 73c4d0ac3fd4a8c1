package app

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/scale"

	"github.com/kube-kcm/kube-controller-manager/pkg/controller/disruption"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/validatingadmissionpolicystatus"
)

var (
	validatingAdmissionPoliciesResource = admissionv1.SchemeGroupVersion.WithResource("validatingadmissionpolicies")
	deploymentsResource                 = appsv1.SchemeGroupVersion.WithResource("deployments")
	replicaSetsResource                 = appsv1.SchemeGroupVersion.WithResource("replicasets")
	podDisruptionBudgetsResource        = policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")
)

func startDisruptionController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	if err := cc.require(podDisruptionBudgetsResource, deploymentsResource, replicaSetsResource,
		appsv1.SchemeGroupVersion.WithResource("statefulsets")); err != nil {
		return nil, false, err
	}
	const account = "disruption-controller"
	hand, err := cc.hand(ctx, account, disruption.EventComponent)
	if err != nil {
		return nil, false, err
	}
	config, err := cc.Clients.Config(account)
	if err != nil {
		return nil, false, fmt.Errorf("configure the client of %s: %w", account, err)
	}
	documents, err := cc.Clients.DiscoveryClient(account)
	if err != nil {
		return nil, false, fmt.Errorf("make the discovery client of %s: %w", account, err)
	}
	kinds := scale.NewDiscoveryScaleKindResolver(documents)
	scales, err := scale.NewForConfig(config, cc.RESTMapper, dynamic.LegacyAPIPathResolverFunc, kinds)
	if err != nil {
		return nil, false, fmt.Errorf("make the scale client of %s: %w", account, err)
	}
	c, err := disruption.New(cc.Informers, hand, disruption.Options{
		Mapper: cc.RESTMapper,
		Scale: func(ctx context.Context, resource schema.GroupResource, namespace, name string) (*autoscalingv1.Scale, error) {
			return scales.Scales(namespace).Get(ctx, resource, name, metav1.GetOptions{})
		},
		Served: documents.ServerResourcesForGroupVersion,
	})
	return cc.run(ctx, c, err)
}

func startValidatingAdmissionPolicyStatusController(ctx context.Context, cc ControllerContext) (http.Handler, bool, error) {
	if err := cc.require(validatingAdmissionPoliciesResource); err != nil {
		return nil, false, err
	}
	const account = "validatingadmissionpolicy-status-controller"
	client, err := cc.Client(account)
	if err != nil {
		return nil, false, err
	}
	documents, err := cc.Clients.DiscoveryClient(account)
	if err != nil {
		return nil, false, fmt.Errorf("make the discovery client of %s: %w", account, err)
	}
	policies := cc.Informers.Admissionregistration().V1().ValidatingAdmissionPolicies()
	c, err := validatingadmissionpolicystatus.New(policies, client, validatingadmissionpolicystatus.Options{
		Workers: int(cc.Config.ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs),
		Clock:   cc.Clock, Mapper: cc.RESTMapper, Discovery: documents,
	})
	return cc.run(ctx, c, err)
}
