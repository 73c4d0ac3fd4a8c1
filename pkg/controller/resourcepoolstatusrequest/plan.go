package resourcepoolstatusrequest

import (
	"cmp"
	"fmt"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/kube-kcm/kube-controller-manager/staging/controllerkit/act"
)

const (
	// keptAnswered and keptPending are how long requests are kept.
	keptAnswered = time.Hour
	keptPending  = 24 * time.Hour

	reasonComplete = "CalculationComplete"
)

// observed is what a plan is made from.
type observed struct {
	request *resourcev1alpha3.ResourcePoolStatusRequest
	// slices and claims are those that have to do with the driver.
	slices []*resourcev1.ResourceSlice
	claims []*resourcev1.ResourceClaim
}

// plan answers a request that has no status, and deletes what has been kept long enough.
func plan(o observed, now time.Time) act.Plan {
	switch r := o.request; {
	case r.DeletionTimestamp != nil:
		return act.Plan{Why: "it is being deleted"}
	case r.Status != nil:
		return kept(r, now)
	}
	status, missing := o.answer(now)
	left := o.request.CreationTimestamp.Add(keptPending).Sub(now)
	switch {
	case left <= 0:
		return deletion(o.request, "it has no answer after a day: "+cmp.Or(missing, "none could be written"))
	case missing != "":
		return act.Plan{Why: missing, RequeueAfter: left}
	}
	return write(o.request, status, now)
}

// kept deletes a request an hour after it was answered.
func kept(r *resourcev1alpha3.ResourcePoolStatusRequest, now time.Time) act.Plan {
	for _, c := range r.Status.Conditions {
		if c.Status != metav1.ConditionTrue || c.Type != resourcev1alpha3.ResourcePoolStatusRequestConditionComplete && c.Type != resourcev1alpha3.ResourcePoolStatusRequestConditionFailed {
			continue
		}
		if left := c.LastTransitionTime.Add(keptAnswered).Sub(now); left > 0 {
			return act.Plan{Why: "it is answered", RequeueAfter: left}
		}
		return deletion(r, "it was answered an hour ago")
	}
	return act.Plan{Why: "it has a status that is not ours"}
}

// deletion is of the version that was looked at: another process may have answered since.
func deletion(r *resourcev1alpha3.ResourcePoolStatusRequest, why string) act.Plan {
	return act.Plan{Why: why, Stages: act.Stages(act.Delete{Of: r, Unchanged: true})}
}

// answer is the status of the request, or what it waits for. Only pools that are in the
// answer have to be complete.
func (o observed) answer(now time.Time) (status *resourcev1alpha3.ResourcePoolStatusRequestStatus, missing string) {
	spec := o.request.Spec
	pools := poolsOf(o.slices, spec.PoolName)
	status = &resourcev1alpha3.ResourcePoolStatusRequestStatus{PoolCount: number(len(pools))}
	limit := ptr.Deref(spec.Limit, resourcev1alpha3.ResourcePoolStatusRequestLimitDefault)
	counts := allocatedIn(spec.Driver, o.claims)
	for _, p := range pools[:min(len(pools), max(0, int(limit)))] {
		if missing = p.incomplete(spec.Driver); missing != "" {
			return nil, missing
		}
		status.Pools = append(status.Pools, p.status(spec.Driver, counts[p.name]))
	}
	status.Conditions = []metav1.Condition{{
		Type: resourcev1alpha3.ResourcePoolStatusRequestConditionComplete, Status: metav1.ConditionTrue, Reason: reasonComplete,
		Message: fmt.Sprintf("Calculated status for %d pools", len(status.Pools)), LastTransitionTime: metav1.NewTime(now),
	}}
	return status, ""
}

// write answers the request and counts that.
func write(r *resourcev1alpha3.ResourcePoolStatusRequest, status *resourcev1alpha3.ResourcePoolStatusRequestStatus, now time.Time) act.Plan {
	driver := r.Spec.Driver
	return act.Plan{
		Why:          fmt.Sprintf("answering with %d of %d pools", len(status.Pools), *status.PoolCount),
		Stages:       act.Stages(act.Status{Of: r, Set: func(o client.Object) { o.(*resourcev1alpha3.ResourcePoolStatusRequest).Status = status }}),
		RequeueAfter: keptAnswered,
		Counts: func(results act.Results) []act.Count {
			if len(results.Held()) > 0 {
				return nil
			}
			counts := []act.Count{{Adds: processed.WithLabelValues(driver), Value: 1}, {Observes: processingSeconds.WithLabelValues(driver), Since: now}}
			if _, err := results.Failed(); err != nil {
				counts = append(counts, act.Count{Adds: processingErrors.WithLabelValues(driver), Value: 1})
			}
			return counts
		},
	}
}
