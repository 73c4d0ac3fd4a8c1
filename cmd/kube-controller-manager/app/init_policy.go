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
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/openapi"
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
	hand, err := cc.hand(ctx, account, "")
	if err != nil {
		return nil, false, err
	}
	client, err := cc.Clients.DiscoveryClient(account)
	if err != nil {
		return nil, false, fmt.Errorf("make the discovery client of %s: %w", account, err)
	}
	policies := cc.Informers.Admissionregistration().V1().ValidatingAdmissionPolicies()
	c, err := validatingadmissionpolicystatus.New(policies, hand, validatingadmissionpolicystatus.Options{
		Workers: int(cc.Config.ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs),
		Mapper:  cc.RESTMapper, Documents: client.OpenAPIV3(),
		SchemasOf: func(documents openapi.Client) resolver.SchemaResolver {
			return &resolver.ClientDiscoveryResolver{Discovery: publishedDocuments{documents: documents}}
		},
	})
	return cc.run(ctx, c, err)
}

// publishedDocuments is discovery that knows some OpenAPI documents, and nothing else.
type publishedDocuments struct {
	discovery.DiscoveryInterface
	documents openapi.Client
}

// OpenAPIV3 reads those documents.
func (p publishedDocuments) OpenAPIV3() openapi.Client { return p.documents }
