package validatingadmissionpolicystatus

import (
	"context"
	"errors"
	"fmt"
	"strings"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/reconcile"
)

// observe reads a policy and, unless it was done, checks it against the documents that
// are published now.
func (c *Controller) observe(_ context.Context, policyName string) (observed, error) {
	o := observed{keeps: c.schemas.drop(c.Clock().Now())}
	policy, err := reconcile.Cached[admissionv1.ValidatingAdmissionPolicy](c.policies, policyName)
	switch {
	case errors.Is(err, reconcile.ErrAbsent) && o.keeps:
		return o, nil // its key may be the one that comes again for the schemas
	case err != nil:
		return o, err
	}
	o.policy = policy
	if unchecked(policy) {
		o.warnings, o.left, o.err = c.check(policy)
	}
	return o, nil
}

// check returns the warnings about a policy, and which types were left out.
func (c *Controller) check(policy *admissionv1.ValidatingAdmissionPolicy) ([]admissionv1.ExpressionWarning, []string, error) {
	list, err := c.documents.Paths()
	if err != nil {
		return nil, nil, fmt.Errorf("list the OpenAPI documents: %w", err)
	}
	found, documents := notes{}, newPaths(list)
	types := &validating.TypeChecker{
		RestMapper:     mapper{c.mapper, found},
		SchemaResolver: newLookup(found, &c.schemas, documents, c.Clock().Now(), c.schemasOf(documents).ResolveSchema),
	}
	warnings := types.Check(policy)
	return warnings, found.left(), found.failed()
}

// elsewhere reports whether a document is of an API that is not built in: another server may
// publish it than the one that is asked.
func elsewhere(path string) bool {
	group, is := strings.CutPrefix(path, "apis/")
	group, _, _ = strings.Cut(group, "/")
	return is && !scheme.Scheme.IsGroupRegistered(group) && group != "apiextensions.k8s.io" && group != "apiregistration.k8s.io"
}
