package replicas

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
)

// holdBack makes of the pods that are missing only as many as may be made now.
func (o Observed) holdBack(p change) change {
	now, until, why := o.Judged.Hold(p.Create)
	if p.Create, p.Until = now, until; why != "" {
		p.Why = fmt.Sprintf("%s, delayed: %s", p.Why, why)
	}
	return p
}

// wait is how long until a pod that was held back may be made; zero if none was.
func (p change) wait(now time.Time) time.Duration {
	if p.Until.IsZero() {
		return 0
	}
	return max(p.Until.Sub(now), time.Millisecond)
}

// withBackoff adds the condition when a pod is held back, and removes it when
// there is nothing more to hold back for, or pods are not held back any more.
// Between two tries it stays as it is.
func withBackoff(conditions []appsv1.ReplicaSetCondition, v *rejections.Verdict, p change, now time.Time) []appsv1.ReplicaSetCondition {
	var told *appsv1.ReplicaSetCondition
	if !p.Until.IsZero() {
		told = &appsv1.ReplicaSetCondition{
			Type: rejections.Condition, Status: corev1.ConditionTrue, Reason: rejections.Reason, LastTransitionTime: metav1.NewTime(now),
			Message: v.Message(p.Until),
		}
	}
	return rejections.Tell(conditions, told, v.Over(), func(c *appsv1.ReplicaSetCondition) (string, *metav1.Time) {
		return string(c.Type), &c.LastTransitionTime
	})
}
