package csrapproving

import (
	"fmt"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/certificates"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const approvedReason = "AutoApproved"

// kind is a sort of request that may be approved without a human.
type kind struct {
	// permission is the subresource that the requestor must be allowed to create.
	permission string
	// message is that of the condition.
	message string
}

var (
	own     = kind{"selfnodeclient", "Auto approving self kubelet client certificate after SubjectAccessReview."}
	another = kind{"nodeclient", "Auto approving kubelet client certificate after SubjectAccessReview."}
)

// waiting reports whether the request is one that this controller may have to judge.
func waiting(csr *certificatesv1.CertificateSigningRequest) bool {
	return csr.Spec.SignerName == certificatesv1.KubeAPIServerClientKubeletSignerName &&
		!certificates.Issued(csr) && !certificates.Decided(csr)
}

func plan(csr *certificatesv1.CertificateSigningRequest, _ time.Time) act.Plan {
	if !waiting(csr) {
		return act.Plan{Why: "it is for another signer, or it is approved or denied already"}
	}
	request, err := certificates.ParseRequest(csr.Spec.Request)
	if err != nil {
		return act.Plan{Why: "it cannot be read", Terminal: fmt.Errorf("unable to parse csr %q: %w", csr.Name, err)}
	}
	if problem := certificates.KubeletClientProblem(request, csr.Spec.Usages); problem != "" {
		return act.Plan{Why: "it is not a request of a kubelet: " + problem}
	}
	if csr.Spec.Username == request.Subject.CommonName {
		return ask(csr, []kind{own, another}, 0)
	}
	return ask(csr, []kind{another}, 0)
}

// ask asks whether the requestor has the permission of a kind, from the one with this
// number on, and approves the request if so. That none would do is an error, so that
// the request is looked at again: roles change.
func ask(csr *certificatesv1.CertificateSigningRequest, kinds []kind, number int) act.Plan {
	if number == len(kinds) {
		permissions := make([]string, len(kinds))
		for i, k := range kinds {
			permissions[i] = k.permission
		}
		return act.Plan{
			Why: fmt.Sprintf("the requestor needs one of %d permissions and has none of them", len(kinds)),
			Err: fmt.Errorf("recognized csr %q as %v but subject access review was not approved", csr.Name, permissions),
		}
	}
	k := kinds[number]
	return act.Plan{
		Why:    fmt.Sprintf("it is a request of a kubelet; checking whether the requestor may create %s", k.permission),
		Stages: act.Stages(act.Ask{Question: question(csr, k)}),
		Then: func(r act.Results) act.Plan {
			if r[len(r)-1].Object.(*authorizationv1.SubjectAccessReview).Status.Allowed {
				return approve(csr, k)
			}
			return ask(csr, kinds, number+1)
		},
	}
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
			Subresource: k.permission, Verb: "create",
		},
	}}
}

// approve puts the condition. Managed fields are all that the cache lacks; the server
// keeps those of an object that has none.
func approve(cached *certificatesv1.CertificateSigningRequest, k kind) act.Plan {
	csr := cached.DeepCopy()
	csr.Status.Conditions = append(csr.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: approvedReason, Message: k.message,
	})
	return act.Plan{
		Why:    fmt.Sprintf("the requestor may create %s", k.permission),
		Stages: act.Stages(act.Update{Object: csr, Subresource: "approval"}),
	}
}
