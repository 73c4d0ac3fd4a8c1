package rejections

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podrules "github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// Since is the annotation of a pod that takes the place of rejected ones: since
// when they are rejected. They are gone, so it is their only record.
const Since = "kube-kcm.github.io/rejected-since"

// Condition and Reason are those of an owner whose pods are held back.
const (
	Condition = "ReplacementBackoff"
	Reason    = "PodsRejected"
)

// longestTurn is how long a place waits at most for its turn among many.
const longestTurn = 15 * time.Minute

// MarkSince gives a new pod the record of those that were rejected in its place.
func MarkSince(pod *corev1.Pod, since time.Time) {
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, Since, since.UTC().Format(time.RFC3339))
}

// SinceOf is the record that a pod carries. One that cannot be read is none.
func SinceOf(pod *corev1.Pod) (time.Time, bool) {
	text, ok := pod.Annotations[Since]
	if !ok {
		return time.Time{}, false
	}
	since, err := time.Parse(time.RFC3339, text)
	return since, err == nil
}

// Troubled reports whether nodes reject the pods of this one's place, as far as is
// known: it was rejected, or it replaces such a one and was not accepted yet.
func Troubled(pod *corev1.Pod) bool {
	_, again := SinceOf(pod)
	return Rejected(pod) || again && podrules.Active(pod) && pod.Status.Phase != corev1.PodRunning && !Accepted(pod)
}

// Due is when a rejected pod is replaced, where each pod has a place of its own
// and the former one goes before the next is made. The first replacement is
// immediate for the first most places, by their rank; the next come after 10 s,
// 20 s, 40 s and so on up to 5 minutes. Of many troubled places each waits for so
// long that no more than spare are tried in a window.
func Due(pod *corev1.Pod, rank, troubled int) time.Time {
	made := pod.CreationTimestamp.Time
	turn := min(time.Duration(troubled)*window/spare, longestTurn)
	since, again := SinceOf(pod)
	switch {
	case again:
		return made.Add(max(step(made.Sub(since)), turn))
	case rank <= most:
		return made
	}
	return made.Add(turn)
}

// step is how long a pod waits that was made so long after the first rejection.
func step(after time.Duration) time.Duration {
	delay, total := firstDelay, time.Duration(0)
	for delay < longestDelay && total+delay <= after {
		total += delay
		delay = min(2*delay, longestDelay)
	}
	return delay
}

// Message is that of the condition of an owner: how many of its pods are rejected
// now, which is replaced next, why and when.
func Message(rejected int, next, reason string, at time.Time) string {
	return fmt.Sprintf("nodes reject the pods (%d now; %s with reason %s); the next pod is created at %s",
		rejected, next, reason, at.UTC().Format(time.RFC3339))
}
