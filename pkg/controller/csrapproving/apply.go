package csrapproving

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
)

// review returns the first of the kinds that the requestor may have, nil if none.
func (c *Controller) review(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, kinds []kind) (*kind, error) {
	for i := range kinds {
		review, err := c.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, question(csr, kinds[i]), metav1.CreateOptions{})
		if err != nil {
			return nil, fmt.Errorf("review the access of the requestor of csr %q: %w", csr.Name, err)
		}
		if review.Status.Allowed {
			return &kinds[i], nil
		}
	}
	return nil, nil
}

func question(csr *certificatesv1.CertificateSigningRequest, k kind) *authorizationv1.SubjectAccessReview {
	extra := make(map[string]authorizationv1.ExtraValue, len(csr.Spec.Extra))
	for key, values := range csr.Spec.Extra {
		extra[key] = authorizationv1.ExtraValue(values)
	}
	return &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: csr.Spec.Username, UID: csr.Spec.UID, Groups: csr.Spec.Groups, Extra: extra,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: certificates.Resource.Group, Version: "*", Resource: certificates.Resource.Resource,
			Subresource: k.Permission, Verb: "create",
		},
	}}
}

func (c *Controller) approve(ctx context.Context, cached *certificatesv1.CertificateSigningRequest, k *kind) error {
	csr := cached.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: approvedReason, Message: k.Message,
	})
	// Managed fields are all that the cache lacks; the server keeps those of an object that has none.
	updated, err := c.client.CertificatesV1().CertificateSigningRequests().UpdateApproval(ctx, csr.Name, csr, metav1.UpdateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("error updating approval for csr: %w", err)
	}
	c.writes.Wrote(csr.Name, certificates.Resource, updated)
	return nil
}
