package app

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
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
	config, err := cc.Clients.Config(account)
	if err != nil {
		return nil, false, fmt.Errorf("configure the client of %s: %w", account, err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, false, fmt.Errorf("make the client of %s: %w", account, err)
	}
	kinds := scale.NewDiscoveryScaleKindResolver(client.Discovery())
	scales, err := scale.NewForConfig(config, cc.RESTMapper, dynamic.LegacyAPIPathResolverFunc, kinds)
	if err != nil {
		return nil, false, fmt.Errorf("make the scale client of %s: %w", account, err)
	}
	c, err := disruption.New(cc.Informers, client, cc.Recorder(ctx, client, disruption.EventComponent),
		disruption.Options{Clock: cc.Clock, Mapper: cc.RESTMapper, Scales: scales, Discovery: client.Discovery()})
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
