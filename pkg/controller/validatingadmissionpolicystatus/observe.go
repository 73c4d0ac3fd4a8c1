package validatingadmissionpolicystatus

import (
	"fmt"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/apiserver/pkg/cel/openapi/resolver"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
)

// published is discovery whose list of OpenAPI documents has been read.
type published struct {
	discovery.DiscoveryInterface
	paths paths
}

// OpenAPIV3 reads documents of that list.
func (p published) OpenAPIV3() openapi.Client { return p.paths }

// check returns the warnings about a policy, and which types were left out.
func (c *Controller) check(policy *admissionv1.ValidatingAdmissionPolicy) ([]admissionv1.ExpressionWarning, []string, error) {
	list, err := c.discovery.OpenAPIV3().Paths()
	if err != nil {
		return nil, nil, fmt.Errorf("list the OpenAPI documents: %w", err)
	}
	found, documents := notes{}, newPaths(list)
	schemas := &resolver.ClientDiscoveryResolver{Discovery: published{c.discovery, documents}}
	types := &validating.TypeChecker{
		RestMapper:     mapper{c.mapper, found},
		SchemaResolver: newLookup(found, &c.schemas, documents, c.clock.Now(), schemas.ResolveSchema),
	}
	warnings := types.Check(policy)
	return warnings, found.left(), found.failed()
}
