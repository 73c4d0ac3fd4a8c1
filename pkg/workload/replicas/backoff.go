package replicas

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
)

// holdBack makes of the pods that are missing only as many as may be tried now.
func (o Observed) holdBack(p change) change {
	v := o.Allowance
	if v == nil || v.Allowed >= p.Create {
		return p
	}
	p.Create = v.Allowed
	p.Why = fmt.Sprintf("%s, delayed: %s", p.Why, v.Message())
	if p.Create == 0 {
		p.Until = v.Until
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
func withBackoff(conditions []appsv1.ReplicaSetCondition, v *rejections.Allowance, p change, now time.Time) []appsv1.ReplicaSetCondition {
	var condition *appsv1.ReplicaSetCondition
	if !p.Until.IsZero() {
		condition = &appsv1.ReplicaSetCondition{
			Type: rejections.Condition, Status: corev1.ConditionTrue, Reason: rejections.Reason, LastTransitionTime: metav1.NewTime(now),
			Message: fmt.Sprintf("%s; the next pod is created at %s", v.Message(), p.Until.UTC().Format(time.RFC3339)),
		}
	}
	return rejections.Update(conditions, condition, v == nil || v.InARow == 0, func(c *appsv1.ReplicaSetCondition) (string, *metav1.Time) {
		return string(c.Type), &c.LastTransitionTime
	})
}
