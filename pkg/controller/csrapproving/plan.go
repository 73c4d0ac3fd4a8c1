package csrapproving

import (
	"fmt"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
)

const approvedReason = "AutoApproved"

// kind is a sort of request that may be approved without a human.
type kind struct {
	// Permission is the subresource that the requestor must be allowed to create.
	Permission string `json:"permission"`
	// Message is that of the condition.
	Message string `json:"-"`
}

var (
	own     = kind{"selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview."}
	another = kind{"nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."}
)

// plan says which permissions would do, in the order in which they are asked for.
type plan struct {
	Ask []kind `json:"ask,omitempty"`
	Why string `json:"why"`
	// Allowed is the permission that the requestor has.
	Allowed string `json:"allowed,omitempty"`
	// broken is the error of a request that cannot be read.
	broken error
}

// waiting tells whether the request is one that this controller may have to judge.
func waiting(csr *certificatesv1.CertificateSigningRequest) bool {
	return csr.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName &&
		!certificates.Issued(csr) && !certificates.Judged(csr)
}

// decide looks at a request; nil is one that is gone.
func decide(csr *certificatesv1.CertificateSigningRequest) plan {
	switch {
	case csr == nil:
		return plan{Why: "the request is gone"}
	case !waiting(csr):
		return plan{Why: "it is for another signer, or somebody has judged it"}
	}
	request, err := certificates.ParseRequest(csr.Spec.Request)
	if err != nil {
		return plan{Why: "it cannot be read", broken: fmt.Errorf("unable to parse csr %q: %w", csr.Name, err)}
	}
	if problem := certificates.KubeletClientProblem(request, csr.Spec.Usages); problem != "" {
		return plan{Why: "it is not that of a kubelet: " + problem}
	}
	if csr.Spec.Username == request.Subject.CommonName {
		return plan{Ask: []kind{own, another}, Why: "a node asks for itself"}
	}
	return plan{Ask: []kind{another}, Why: "somebody asks for a node"}
}
