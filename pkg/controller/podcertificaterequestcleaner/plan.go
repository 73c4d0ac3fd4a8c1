package podcertificaterequestcleaner

import (
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
)

// maxAge is how long after its creation a request is deleted.
const maxAge = 15 * time.Minute

// plan says whether to delete a request, or when to look at it again.
type plan struct {
	Delete bool   `json:"delete,omitempty"`
	Why    string `json:"why"`
	again  time.Duration
}

// decide judges a request, nil when it is gone, by its age.
func decide(request *certificatesv1beta1.PodCertificateRequest, now time.Time) plan {
	switch {
	case request == nil:
		return plan{Why: "the request is gone"}
	case request.DeletionTimestamp != nil:
		return plan{Why: "the request is being deleted"}
	}
	if left := request.CreationTimestamp.Add(maxAge).Sub(now); left > 0 {
		return plan{Why: "the request is not old enough", again: left}
	}
	return plan{Delete: true, Why: "the request is old"}
}
