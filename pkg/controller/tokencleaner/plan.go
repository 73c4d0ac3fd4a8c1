package tokencleaner

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/bootstraptokens"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

func plan(secret *corev1.Secret, now time.Time) act.Plan {
	life := bootstraptokens.LifeOf(secret)
	switch {
	case secret.DeletionTimestamp != nil:
		return act.Plan{Why: "it is being deleted"}
	case life.Err != nil:
		return deletion(secret, life.Err.Error())
	case life.Over(now):
		return deletion(secret, "it has expired")
	case life.Ends:
		return act.Plan{Why: fmt.Sprintf("it expires in %s", life.Left(now)), RequeueAfter: life.Left(now)}
	}
	return act.Plan{Why: "it never expires"}
}

// deletion is of the version that was looked at: the expiration may have been put off
// since. That makes a second one harmless.
func deletion(secret *corev1.Secret, why string) act.Plan {
	return act.Plan{Why: why, Stages: act.Stages(act.Delete{Of: secret, Unchanged: true, MayRepeat: true})}
}
