package job

import (
	"fmt"
	"slices"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
)

// A Job backs off by itself when pods fail, and gives up in the end. Two cases stay
// unbounded. It tries again at once after failures that its policy ignores, or that its
// limit allows while other pods succeed. And with a limit per index, each index is tried
// on its own. The rejected pods of a Job stay, so they are counted together, as those of
// a ReplicaSet are.

// allowanceNow is what rejected pods mean for the next ones; nil when none is made.
func (v *view) allowanceNow() *rejections.Allowance {
	if suspended(v.job) || v.job.DeletionTimestamp != nil {
		return nil
	}
	allowance := rejections.AllowanceFor(v.pods, wanted(v), v.now)
	return &allowance
}

// holdBack makes of the planned pods only as many as may be tried now, and notes
// until when rejected pods hold all of them back.
func (v *view) holdBack(p change) change {
	j := v.allowance
	if j == nil {
		return p
	}
	if j.Allowed < len(p.create) {
		p.create = p.create[:j.Allowed]
		if p.why += ", held back: " + j.Message(); j.Allowed == 0 {
			p.wait = max(j.Until.Sub(v.now), time.Millisecond)
		}
	}
	if len(p.create) == 0 && p.wait > 0 && j.InARow > 0 {
		p.until = v.now.Add(p.wait)
	}
	return p
}

// withBackoff adds the condition when all pods are held back, and removes it when
// there is nothing more to hold back for. Between two tries it stays as it is.
func withBackoff(conditions []batchv1.JobCondition, j *rejections.Allowance, until, now time.Time) []batchv1.JobCondition {
	var condition *batchv1.JobCondition
	if j != nil && !until.IsZero() {
		moment := metav1.NewTime(now)
		condition = &batchv1.JobCondition{
			Type: rejections.Condition, Status: corev1.ConditionTrue, Reason: rejections.Reason, LastProbeTime: moment, LastTransitionTime: moment,
			Message: fmt.Sprintf("%s; the next pod is created at %s", j.Message(), until.UTC().Format(time.RFC3339)),
		}
		if slices.ContainsFunc(conditions, func(c batchv1.JobCondition) bool { return c.Type == condition.Type && c.Message == condition.Message }) {
			return conditions
		}
	}
	return rejections.Update(conditions, condition, j == nil || j.InARow == 0, func(c *batchv1.JobCondition) (string, *metav1.Time) {
		return string(c.Type), &c.LastTransitionTime
	})
}
