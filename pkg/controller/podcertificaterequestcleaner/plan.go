package podcertificaterequestcleaner

import (
	"fmt"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

// maxAge is how long after its creation a request is deleted.
const maxAge = 15 * time.Minute

func plan(request *certificatesv1beta1.PodCertificateRequest, now time.Time) act.Plan {
	if request.DeletionTimestamp != nil {
		return act.Plan{Why: "it is being deleted"}
	}
	if left := request.CreationTimestamp.Add(maxAge).Sub(now); left > 0 {
		return act.Plan{Why: fmt.Sprintf("it is deleted in %s", left.Round(time.Second)), RequeueAfter: left}
	}
	return act.Plan{Why: fmt.Sprintf("it is older than %s", maxAge), Stages: act.Stages(act.Delete{Of: request})}
}
