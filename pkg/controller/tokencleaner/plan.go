package tokencleaner

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/bootstraptokens"
)

// plan says what becomes of a token.
type plan struct {
	Delete bool          `json:"delete,omitempty"`
	Again  time.Duration `json:"again,omitempty"`
	Why    string        `json:"why"`
}

// decide judges the secret of a token at this time.
func decide(secret *corev1.Secret, now time.Time) plan {
	life := bootstraptokens.LifeOf(secret)
	switch {
	case secret.DeletionTimestamp != nil:
		return plan{Why: "it is being deleted"}
	case life.Err != nil:
		return plan{Delete: true, Why: life.Err.Error()}
	case life.Over(now):
		return plan{Delete: true, Why: "it has expired"}
	case life.Ends:
		return plan{Again: life.Left(now), Why: "it has not expired yet"}
	}
	return plan{Why: "it never expires"}
}
