package app

import (
	"context"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"

	"github.com/kube-kcm/kube-controller-manager/cmd/kube-controller-manager/names"
	"github.com/kube-kcm/kube-controller-manager/pkg/controller/validatingadmissionpolicystatus"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

func admissionControllers() []Controller {
	return []Controller{
		{Name: names.ValidatingAdmissionPolicyStatusController, Needs: of(admissionv1.SchemeGroupVersion, "validatingadmissionpolicies"),
			Account: "validatingadmissionpolicy-status-controller", New: newValidatingAdmissionPolicyStatus},
	}
}

func newValidatingAdmissionPolicyStatus(_ context.Context, cc ControllerContext, hand reconcile.Hand) (Loop, error) {
	client, err := cc.discovery()
	if err != nil {
		return nil, err
	}
	policies := cc.Informers.Admissionregistration().V1().ValidatingAdmissionPolicies()
	return validatingadmissionpolicystatus.New(policies, hand, validatingadmissionpolicystatus.Options{
		Workers: int(cc.Config.ValidatingAdmissionPolicyStatusController.ConcurrentPolicySyncs),
		Mapper:  cc.RESTMapper, Documents: client.OpenAPIV3(),
		SchemasOf: func(documents openapi.Client) resolver.SchemaResolver {
			return &resolver.ClientDiscoveryResolver{Discovery: publishedDocuments{documents: documents}}
		},
	})
}

// publishedDocuments is discovery that knows some OpenAPI documents, and nothing else.
type publishedDocuments struct {
	discovery.DiscoveryInterface
	documents openapi.Client
}

// OpenAPIV3 reads those documents.
func (p publishedDocuments) OpenAPIV3() openapi.Client { return p.documents }
