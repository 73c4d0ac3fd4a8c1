package statefulset

import (
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/rejections"
)

// heldIn is what rejected pods mean for the ones in these places; nil when all are
// replaced at once.
func (o observed) heldIn(places []place) *rejections.Held {
	if !o.backsOff {
		return nil
	}
	in := make([]rejections.Place, len(places))
	for i, p := range places {
		in[i] = rejections.Place{Pod: p.pod, Renewed: p.pod != nil && revisionOf(p.pod) != o.wantedRevision(i).name}
	}
	return rejections.HoldPlaces(in, rejectedSince(o.set))
}

// withBackoff adds the condition that tells of rejected pods, or says its next time,
// and removes it when there is nothing more to hold back.
func withBackoff(conditions []appsv1.StatefulSetCondition, held *rejections.Held, now time.Time) []appsv1.StatefulSetCondition {
	var told *appsv1.StatefulSetCondition
	if message := held.Message(); message != "" {
		told = &appsv1.StatefulSetCondition{
			Type: rejections.Condition, Status: corev1.ConditionTrue, Reason: rejections.Reason,
			LastTransitionTime: metav1.NewTime(now.Truncate(time.Second)), Message: message,
		}
	}
	return tellBackoff(conditions, told, held.Ended())
}

// tellBackoff brings the condition that tells of rejected pods up to date among others.
func tellBackoff(conditions []appsv1.StatefulSetCondition, told *appsv1.StatefulSetCondition, over bool) []appsv1.StatefulSetCondition {
	return rejections.Tell(conditions, told, over, func(c *appsv1.StatefulSetCondition) (string, *metav1.Time) {
		return string(c.Type), &c.LastTransitionTime
	})
}

func ofBackoff(c appsv1.StatefulSetCondition) bool { return c.Type == rejections.Condition }

// rejectedSince is when the set's condition began; zero if it has none.
func rejectedSince(set *appsv1.StatefulSet) time.Time {
	if at := slices.IndexFunc(set.Status.Conditions, ofBackoff); at >= 0 {
		return set.Status.Conditions[at].LastTransitionTime.Time
	}
	return time.Time{}
}

// backoffOf is what a status says of rejected pods; nil if it says nothing.
func backoffOf(status *appsv1.StatefulSetStatus) *appsv1.StatefulSetCondition {
	if at := slices.IndexFunc(status.Conditions, ofBackoff); at >= 0 {
		return &status.Conditions[at]
	}
	return nil
}
