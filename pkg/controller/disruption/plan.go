package disruption

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	podrules "github.com/kube-kcm/kube-controller-manager/pkg/pods"
)

// deletionTimeout is how long after its eviction was allowed a pod counts as
// disrupted although nobody deletes it.
const deletionTimeout = 2 * time.Minute

// Reasons of events, and their words.
const (
	reasonNoPods          = "NoPods"
	reasonCountFailed     = "CalculateExpectedPodCountFailed"
	reasonUnmanaged       = "UnmanagedPods"
	reasonNotDeleted      = "NotDeleted"
	reasonMultipleBudgets = "MultiplePodDisruptionBudgets"

	noPodsFormat      = "Failed to get pods: %v"
	countFailedFormat = "Failed to calculate the number of expected pods: %v"
	notDeletedFormat  = "Pod was expected by PDB %s/%s to be deleted but it wasn't"
	multipleFormat    = "Pod %q/%q matches multiple PodDisruptionBudgets.  Chose %q arbitrarily."
	unmanagedFormat   = "Pods selected by this PodDisruptionBudget (selector: %v) were found to be unmanaged. As a result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. To account for these pods please set \".spec.minAvailable\" field of the PDB to an integer value."
)

// observed is what a decision is made on.
type observed struct {
	budget   *policyv1.PodDisruptionBudget
	pods     []*corev1.Pod
	expected expectation
	// failed is what could not be found out, and how the event about it begins.
	failed       error
	failedReason string
	failedFormat string
	// confirm is when a scale that is not quite fresh may be read again; zero if
	// there is none.
	confirm time.Duration
}

// notice is an event about the budget.
type notice struct {
	kind, reason, message string
	// once says that it goes along with a change of the status and not alone.
	once bool
}

// plan is what to report, and what to say about it.
type plan struct {
	status  policyv1.PodDisruptionBudgetStatus
	notices []notice
	// overdue are pods whose eviction was allowed and which nobody deleted.
	overdue []*corev1.Pod
	// recheck is when the next allowed eviction is overdue, again when what was
	// not quite fresh may be read again; zero if there is none.
	recheck, again time.Duration
	// failed is why nothing could be computed.
	failed error
}

// decide computes the status of the budget.
func decide(o observed, now time.Time) plan {
	p := plan{again: o.confirm}
	if o.failed != nil {
		return p.failSafe(o, now)
	}
	if len(o.pods) == 0 {
		p.say(corev1.EventTypeNormal, reasonNoPods, "No matching pods found", false)
	}
	expected, desired, err := required(&o.budget.Spec, len(o.pods), o.expected)
	if err != nil {
		o.failed, o.failedReason, o.failedFormat = err, reasonCountFailed, countFailedFormat
		return p.failSafe(o, now)
	}
	if len(o.expected.unmanaged) > 0 {
		p.say(corev1.EventTypeWarning, reasonUnmanaged, fmt.Sprintf(unmanagedFormat, o.budget.Spec.Selector), true)
	}
	disrupted, overdue, until := disruptions(o.pods, o.budget.Status.DisruptedPods, now)
	p.overdue, p.recheck = overdue, until
	healthy := countHealthy(o.pods, disrupted)
	p.status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: o.budget.Generation,
		DisruptedPods:      disrupted,
		DisruptionsAllowed: allowed(expected, healthy, desired),
		CurrentHealthy:     healthy,
		DesiredHealthy:     desired,
		ExpectedPods:       expected,
	}
	p.status.Conditions = withAllowed(o.budget.Status.Conditions, &p.status, now)
	return p
}

// allowed is how many of the healthy pods may go. While no pod is expected none
// may: the first ones may be there already, and not be counted yet.
func allowed(expected, healthy, desired int32) int32 {
	if expected <= 0 {
		return 0
	}
	return max(0, healthy-desired)
}

// failSafe allows nothing and says why. What was known before stays.
func (p plan) failSafe(o observed, now time.Time) plan {
	p.say(corev1.EventTypeWarning, o.failedReason, fmt.Sprintf(o.failedFormat, o.failed), true)
	p.failed = o.failed
	o.budget.Status.DeepCopyInto(&p.status)
	p.status.DisruptionsAllowed = 0
	meta.SetStatusCondition(&p.status.Conditions, metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason,
		Message: o.failed.Error(), ObservedGeneration: p.status.ObservedGeneration, LastTransitionTime: metav1.NewTime(now),
	})
	return p
}

func (p *plan) say(kind, reason, message string, once bool) {
	p.notices = append(p.notices, notice{kind, reason, message, once})
}

// withAllowed returns the conditions with one that reports whether any pod may go.
func withAllowed(conditions []metav1.Condition, status *policyv1.PodDisruptionBudgetStatus, now time.Time) []metav1.Condition {
	conditions = append([]metav1.Condition{}, conditions...)
	condition := metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.InsufficientPodsReason,
		ObservedGeneration: status.ObservedGeneration, LastTransitionTime: metav1.NewTime(now),
	}
	if status.DisruptionsAllowed > 0 {
		condition.Status, condition.Reason = metav1.ConditionTrue, policyv1.SufficientPodsReason
	}
	meta.SetStatusCondition(&conditions, condition)
	return conditions
}

// disruptions are the allowed evictions that still count: of pods that are there
// and not being deleted yet. Those that are overdue count no more; until is when
// the next one will be.
func disruptions(pods []*corev1.Pod, noted map[string]metav1.Time, now time.Time) (left map[string]metav1.Time, overdue []*corev1.Pod, until time.Duration) {
	left = map[string]metav1.Time{}
	if len(noted) == 0 {
		return left, nil, 0
	}
	for _, pod := range pods {
		at, ok := noted[pod.Name]
		if !ok || pod.DeletionTimestamp != nil {
			continue
		}
		wait := at.Add(deletionTimeout).Sub(now)
		if wait <= 0 {
			overdue = append(overdue, pod)
			continue
		}
		left[pod.Name], until = at, sooner(until, wait)
	}
	return left, overdue, until
}

// countHealthy counts the pods that are ready and not on their way out.
func countHealthy(pods []*corev1.Pod, disrupted map[string]metav1.Time) (healthy int32) {
	for _, pod := range pods {
		if _, going := disrupted[pod.Name]; !going && pod.DeletionTimestamp == nil && podrules.Ready(pod) {
			healthy++
		}
	}
	return healthy
}

// reported reports whether the API server has this status already.
func reported(old, now *policyv1.PodDisruptionBudgetStatus) bool {
	return apiequality.Semantic.DeepEqual(old, now)
}

// underWay reports whether the status differs only in counts from which nobody
// decides anything: as many pods as before may go, for the same reason, and
// unready ones may go or not as before.
func underWay(old, now *policyv1.PodDisruptionBudgetStatus) bool {
	return old.ObservedGeneration == now.ObservedGeneration && old.DisruptionsAllowed == now.DisruptionsAllowed &&
		enoughHealthy(old) == enoughHealthy(now) &&
		apiequality.Semantic.DeepEqual(old.DisruptedPods, now.DisruptedPods) && apiequality.Semantic.DeepEqual(old.Conditions, now.Conditions)
}

// enoughHealthy is what the API server evicts unready pods by.
func enoughHealthy(s *policyv1.PodDisruptionBudgetStatus) bool {
	return s.DesiredHealthy > 0 && s.CurrentHealthy >= s.DesiredHealthy
}

// sooner is the shorter of two waits, of which zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// explanation is a plan as the debug endpoint shows it.
type explanation struct {
	Allowed  int32  `json:"allowed"`
	Healthy  int32  `json:"healthy"`
	Desired  int32  `json:"desired"`
	Expected int32  `json:"expected"`
	Why      string `json:"why"`
}

func (p plan) explain() explanation {
	e := explanation{p.status.DisruptionsAllowed, p.status.CurrentHealthy, p.status.DesiredHealthy, p.status.ExpectedPods, ""}
	switch {
	case p.failed != nil:
		e.Why = "none may go, as it cannot be computed how many: " + p.failed.Error()
	case e.Expected <= 0:
		e.Why = "no pod is expected"
	default:
		e.Why = fmt.Sprintf("%d healthy of %d expected, %d have to be; %d are about to go", e.Healthy, e.Expected, e.Desired, len(p.status.DisruptedPods))
	}
	return e
}
