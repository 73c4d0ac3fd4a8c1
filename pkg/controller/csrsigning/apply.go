package csrsigning

import (
	"context"
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
)

// issue signs the request and hands the certificate over.
func (s *signer) issue(ctx context.Context, cached *certificatesv1.CertificateSigningRequest, do plan) error {
	c := s.controller
	certificate, err := sign(s.pair.authority(), do.request, &cached.Spec, c.duration, c.clock.Now())
	if err != nil {
		return fmt.Errorf("error auto signing csr: %w", err)
	}
	csr := cached.DeepCopy()
	csr.Status.Certificate = certificate
	if err := s.write(ctx, csr); err != nil {
		return fmt.Errorf("error updating signature for csr: %w", err)
	}
	return nil
}

// fail says for good that the request will not be signed, and why.
func (s *signer) fail(ctx context.Context, cached *certificatesv1.CertificateSigningRequest, problem string) error {
	csr := cached.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateFailed, Status: corev1.ConditionTrue,
		Reason: failedReason, Message: problem, LastUpdateTime: metav1.NewTime(s.controller.clock.Now()),
	})
	if err := s.write(ctx, csr); err != nil {
		return fmt.Errorf("error adding failure condition for csr: %w", err)
	}
	return nil
}

// write sends the status. Managed fields are all that the cache lacks, and the
// server keeps those of an object that comes without.
func (s *signer) write(ctx context.Context, csr *certificatesv1.CertificateSigningRequest) error {
	updated, err := s.controller.client.CertificatesV1().CertificateSigningRequests().UpdateStatus(ctx, csr, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err == nil {
		s.writes.Wrote(csr.Name, certificates.Resource, updated)
	}
	return err
}
