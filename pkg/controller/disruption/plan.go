package disruption

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	podrules "github.com/kube-kcm/kube-controller-manager/pkg/workload/pods"
	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
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

// decision is the status to report, and the events about it.
type decision struct {
	status policyv1.PodDisruptionBudgetStatus
	// events are sent in any case, onChange only with a change of the status.
	events, onChange []act.Event
	// overdue are about pods whose eviction was allowed and which nobody deleted.
	overdue []act.Event
	// recheck is when the next allowed eviction is overdue, again when what was
	// not quite fresh may be read again; zero if there is none.
	recheck, again time.Duration
	// failed is why nothing could be computed.
	failed error
}

// plan reports the status of the budget if it differs, and sends its events. A
// status that counts what nobody acts on may wait, unless an event is sent with it.
func plan(o observed, now time.Time) act.Plan {
	return decide(o, now).plan(o.budget, now)
}

func (d decision) plan(budget *policyv1.PodDisruptionBudget, now time.Time) act.Plan {
	p := act.Plan{Why: d.why(), RequeueAfter: d.again, Err: d.failed, Note: func(r act.Results) any {
		_, err := r.Failed()
		n := note{unwritten: err != nil}
		if d.recheck > 0 {
			n.overdue = now.Add(d.recheck)
		}
		return n
	}}
	if reported(&budget.Status, &d.status) {
		for _, e := range slices.Concat(d.events, d.overdue) {
			p.Stages = append(p.Stages, act.InTurn(e))
		}
		return p
	}
	// It is for the version that is cached: an eviction that the API server has
	// allowed meanwhile must not be lost.
	report := put(budget, d.status)
	report.MayWait = d.failed == nil && d.events == nil && underWay(&budget.Status, &d.status)
	report.Tell = slices.Concat(d.events, d.onChange, d.overdue)
	p.Status = func(act.Results) act.Step { return report }
	if d.failed == nil {
		p.Status, p.Stages = nil, act.Stages(report)
		p.Else = func(r act.Results) act.Plan { return d.unwritten(budget, r, now) }
	}
	return p
}

// unwritten allows nothing while the status cannot be written: the one that is there
// may allow too much. After a conflict a newer version is on its way to the caches.
func (d decision) unwritten(budget *policyv1.PodDisruptionBudget, r act.Results, now time.Time) act.Plan {
	p := act.Plan{Why: "the status is not written", RequeueAfter: d.again}
	last := r[len(r)-1]
	if last.Became != act.Refused && last.Became != act.Uncertain || apierrors.IsConflict(last.Err) {
		return p
	}
	status := nothingAllowed(budget, last.Err, now)
	p.Why = "no disruption is allowed, since the status cannot be written: " + last.Err.Error()
	if !reported(&budget.Status, &status) {
		p.Stages = act.Stages(put(budget, status))
	}
	return p
}

func put(budget *policyv1.PodDisruptionBudget, status policyv1.PodDisruptionBudgetStatus) act.Status {
	return act.Status{Of: budget, Set: func(o client.Object) { o.(*policyv1.PodDisruptionBudget).Status = status }}
}

// decide computes the status of the budget.
func decide(o observed, now time.Time) decision {
	d := decision{again: o.confirm}
	if o.failed != nil {
		return d.failSafe(o, now)
	}
	if len(o.pods) == 0 {
		d.events = []act.Event{{On: o.budget, Type: corev1.EventTypeNormal, Reason: reasonNoPods, Message: "No matching pods found"}}
	}
	expected, desired, err := required(&o.budget.Spec, len(o.pods), o.expected)
	if err != nil {
		o.failed, o.failedReason, o.failedFormat = err, reasonCountFailed, countFailedFormat
		return d.failSafe(o, now)
	}
	if len(o.expected.unmanaged) > 0 {
		d.warnOnce(o.budget, reasonUnmanaged, fmt.Sprintf(unmanagedFormat, o.budget.Spec.Selector))
	}
	disrupted, overdue, until := disruptions(o.pods, o.budget.Status.DisruptedPods, now)
	d.recheck = until
	for _, pod := range overdue {
		// It names the namespace in the place of the budget, as it always has.
		d.overdue = append(d.overdue, act.Event{On: pod, Type: corev1.EventTypeWarning, Reason: reasonNotDeleted,
			Message: fmt.Sprintf(notDeletedFormat, o.budget.Namespace, o.budget.Namespace)})
	}
	healthy := countHealthy(o.pods, disrupted)
	d.status = policyv1.PodDisruptionBudgetStatus{
		ObservedGeneration: o.budget.Generation,
		DisruptedPods:      disrupted,
		DisruptionsAllowed: allowed(expected, healthy, desired),
		CurrentHealthy:     healthy,
		DesiredHealthy:     desired,
		ExpectedPods:       expected,
	}
	d.status.Conditions = withAllowed(o.budget.Status.Conditions, &d.status, now)
	return d
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
func (d decision) failSafe(o observed, now time.Time) decision {
	d.warnOnce(o.budget, o.failedReason, fmt.Sprintf(o.failedFormat, o.failed))
	d.failed = o.failed
	d.status = nothingAllowed(o.budget, o.failed, now)
	return d
}

// nothingAllowed is the status that the budget has, with no disruption allowed, because
// of this error.
func nothingAllowed(budget *policyv1.PodDisruptionBudget, err error, now time.Time) policyv1.PodDisruptionBudgetStatus {
	status := *budget.Status.DeepCopy()
	status.DisruptionsAllowed = 0
	meta.SetStatusCondition(&status.Conditions, metav1.Condition{
		Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse, Reason: policyv1.SyncFailedReason,
		Message: err.Error(), ObservedGeneration: status.ObservedGeneration, LastTransitionTime: metav1.NewTime(now),
	})
	return status
}

func (d *decision) warnOnce(on client.Object, reason, message string) {
	d.onChange = append(d.onChange, act.Event{On: on, Type: corev1.EventTypeWarning, Reason: reason, Message: message})
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
		left[pod.Name], until = at, act.Soonest(until, wait)
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

// why says what was counted.
func (d decision) why() string {
	s := &d.status
	switch {
	case d.failed != nil:
		return "no disruption is allowed, since the number cannot be computed: " + d.failed.Error()
	case s.ExpectedPods <= 0:
		return "no pod is expected"
	}
	return fmt.Sprintf("%d of %d expected pods are healthy, %d must be: %d may be evicted; %d evictions are in progress",
		s.CurrentHealthy, s.ExpectedPods, s.DesiredHealthy, s.DisruptionsAllowed, len(s.DisruptedPods))
}
