package replicas

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
)

// ranking is what besides the pods themselves decides which go first.
type ranking struct {
	// onNode counts related pods by node.
	onNode map[string]int
	// byCost heeds the pod-deletion-cost annotation.
	byCost bool
	now    time.Time
}

// candidate is a pod with what it is ranked by.
type candidate struct {
	pod                       *corev1.Pod
	scheduled, ready          bool
	phase                     int
	cost                      int32
	neighbors                 int
	readySince, created       time.Time
	restarts, sidecarRestarts int32
}

// victims returns the n pods that are missed least. The pods given are not reordered.
func victims(all []*corev1.Pod, n int, r ranking) []*corev1.Pod {
	if n >= len(all) {
		return all
	}
	candidates := make([]candidate, len(all))
	for i, pod := range all {
		candidates[i] = r.candidateOf(pod)
	}
	slices.SortFunc(candidates, r.compare)
	chosen := make([]*corev1.Pod, n)
	for i := range chosen {
		chosen[i] = candidates[i].pod
	}
	return chosen
}

func (r ranking) candidateOf(pod *corev1.Pod) candidate {
	c := candidate{
		pod:        pod,
		scheduled:  pods.Scheduled(pod),
		ready:      pods.Ready(pod),
		phase:      pods.PhaseRank(pod),
		neighbors:  r.onNode[pod.Spec.NodeName],
		readySince: pods.ReadySince(pod),
		created:    pod.CreationTimestamp.Time,
	}
	c.restarts, c.sidecarRestarts = pods.MaxRestarts(pod)
	if r.byCost {
		c.cost = deletionCost(pod)
	}
	return c
}

// compare orders by what is lost with the pod: one that has not started, that
// its users call cheap, that leaves another on its node, that has served only
// for a short time or does not run well. Pods without any difference go in the
// order of their UIDs, so that the same pods always give the same choice.
func (r ranking) compare(a, b candidate) int {
	return cmp.Or(
		pods.FalseFirst(a.scheduled, b.scheduled),
		cmp.Compare(a.phase, b.phase),
		pods.FalseFirst(a.ready, b.ready),
		cmp.Compare(a.cost, b.cost),
		cmp.Compare(b.neighbors, a.neighbors),
		r.youngerFirst(a.readySince, b.readySince, a, b),
		cmp.Compare(b.restarts, a.restarts),
		cmp.Compare(b.sidecarRestarts, a.sidecarRestarts),
		r.youngerFirst(a.created, b.created, a, b),
		cmp.Compare(a.pod.UID, b.pod.UID),
	)
}

// youngerFirst compares ages by powers of two. Between pods of about the same
// age the UID decides, which is as good as chance: if the very youngest always
// went, all pods of a zone that came up last would go together.
func (r ranking) youngerFirst(since, other time.Time, a, b candidate) int {
	if since.Equal(other) || since.IsZero() || other.IsZero() {
		return pods.NewestFirst(since, other)
	}
	return cmp.Or(
		cmp.Compare(magnitude(r.now.Sub(since)), magnitude(r.now.Sub(other))),
		cmp.Compare(a.pod.UID, b.pod.UID),
	)
}

// magnitude is the power of two of an age; -1 for a moment that is yet to come.
func magnitude(age time.Duration) int {
	if age <= 0 {
		return -1
	}
	return int(math.Log2(float64(age)))
}

// deletionCost is the int32 of the pod-deletion-cost annotation. What the API
// server would refuse counts as none: text that is no number, is out of range,
// or has a plus sign or leading zeros.
func deletionCost(pod *corev1.Pod) int32 {
	text := pod.Annotations[corev1.PodDeletionCost]
	cost, err := strconv.ParseInt(text, 10, 32)
	if err != nil || text[0] == '+' || (text[0] == '0' && text != "0") {
		return 0
	}
	return int32(cost)
}

// ageRatios compares the age of each ready victim with that of the youngest
// ready pod, but for those that are held. It is empty when all pods go, because nothing was
// chosen then.
func ageRatios(all, chosen []*corev1.Pod, held map[types.UID]bool, now time.Time) []float64 {
	if len(chosen) >= len(all) {
		return nil
	}
	var youngest time.Time
	for _, pod := range all {
		if created := pod.CreationTimestamp.Time; created.After(youngest) && pods.Ready(pod) {
			youngest = created
		}
	}
	least := now.Sub(youngest)
	if least <= 0 {
		return nil
	}
	var ratios []float64
	for _, pod := range chosen {
		if pods.Ready(pod) && !held[pod.UID] {
			ratios = append(ratios, float64(now.Sub(pod.CreationTimestamp.Time))/float64(least))
		}
	}
	return ratios
}
